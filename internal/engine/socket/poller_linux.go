package socket

import (
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epoll is a poller that waits for everything in one epoll_wait, or sleeps in another. Sockets are edge-triggered: after
// an event the connection must be read until a read returns less than the buffer holds.
//
// Go's own poller does the same for one goroutine per connection, at the cost of a goroutine switch
// per reply, a futex whenever a processor goes idle, and system calls that notify the scheduler;
// see docs/decisions/0008-event-loops.md for measurements.
type epoll struct {
	epoll, timer, waker int
	own                 int // another one, for sleeps: of the timer, the waker, and ends of connections
	events              [MaxEvents]unix.EpollEvent
	ready               [MaxEvents]Event
	armed               int64 // when the timer fires; math.MaxInt64 = not set
	woken               atomic.Bool
}

// MaxEvents bounds the events per wake-up, so that thousands of ready connections do not keep the
// loop busy for milliseconds.
const MaxEvents = 128

// Event numbers of the poller's own file descriptors; no connection has them.
const (
	timerNumber = -1 - iota
	wakerNumber
)

func newPoller() (Poller, error) {
	p := &epoll{
		epoll: -1,
		timer: -1,
		waker: -1,
		own:   -1,
		armed: math.MaxInt64,
	}
	var err error
	for _, fd := range []*int{&p.epoll, &p.own} {
		if *fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			p.Close()
			return nil, os.NewSyscallError("epoll_create1", err)
		}
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC,
		unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		p.Close()
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	if p.waker, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		p.Close()
		return nil, os.NewSyscallError("eventfd", err)
	}
	for fd, number := range map[int]int32{p.timer: timerNumber, p.waker: wakerNumber} {
		for _, in := range []int{p.epoll, p.own} {
			if err := add(in, fd, unix.EPOLLIN, Event{Number: number}); err != nil {
				p.Close()
				return nil, err
			}
		}
	}
	return p, nil
}

func (p *epoll) Add(fd int, e Event) error {
	if err := add(p.own, fd, unix.EPOLLRDHUP, e); err != nil {
		return err
	}
	return add(p.epoll, fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP, e)
}

func add(epoll, fd int, events uint32, e Event) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{
			Events: events | unix.EPOLLET,
			Fd:     e.Number,
			Pad:    e.Generation,
		}))
}

func (p *epoll) Wait(now, until int64) []Event {
	return p.wait(p.epoll, p.arm(now, until))
}

func (p *epoll) Sleep(now, until int64) bool {
	return len(p.wait(p.own, p.arm(now, until))) == 0
}

// arm sets the timer, and returns the timeout of a wait.
func (p *epoll) arm(now, until int64) int {
	timeout := -1
	switch {
	case until <= now:
		timeout = 0
	case until < p.armed:
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(until - now)}
		err := unix.TimerfdSettime(p.timer, 0, &spec, nil)
		if err != nil {
			timeout = int((until - now) / 1e6) // should not happen; the wait would only end early
		}
		p.armed = until
	}
	return timeout
}

// wait is epoll_wait(2), at most for timeout milliseconds; -1 = until there is an event.
func (p *epoll) wait(in, timeout int) []Event {
	n, err := unix.EpollWait(in, p.events[:], timeout)
	if err != nil { // EINTR
		return nil
	}
	ready := p.ready[:0]
	for i := range p.events[:n] {
		switch e := &p.events[i]; e.Fd {
		case timerNumber:
			p.armed = math.MaxInt64
		case wakerNumber:
			var count [8]byte
			_, _ = unix.Read(p.waker, count[:])
			p.woken.Store(false)
		default:
			ready = append(ready, Event{
				Number:     e.Fd,
				Generation: e.Pad,
				Ended:      e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0,
			})
		}
	}
	return ready
}

func (p *epoll) Wake() {
	if p.woken.CompareAndSwap(false, true) {
		_, _ = unix.Write(p.waker, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (p *epoll) Close() {
	for _, fd := range []int{p.waker, p.timer, p.own, p.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// FD is the file descriptor of a connection in non-blocking mode. Reads and writes return
// immediately, so they bypass Go's scheduler.
type FD int

// Detach duplicates the file descriptor of a TCP connection outside of Go's poller; ok is false if
// c is another type, or the process has reached its limit of open files.
func Detach(c syscall.Conn) (s FD, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, false
	}
	fd := -1
	err = raw.Control(func(old uintptr) { fd, _ = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil || fd < 0 {
		return -1, false
	}
	if Bounded {
		// without stamps, figures have wider bounds
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	return FD(fd), true
}

// Receiver reads sockets with the kernel's stamps of when the data arrived. One goroutine at a time
// may use it.
type Receiver struct {
	header  unix.Msghdr
	data    unix.Iovec
	control [64]byte
}

// Read is recvmsg(2): 0 bytes at the end of the stream, errAgain if no data is available. stamp is
// when the last byte arrived, by the wall clock in nanoseconds; 0 if the kernel does not tell.
func (r *Receiver) Read(s FD, p []byte) (n int, stamp int64, err error) {
	if !Bounded {
		n, err = s.read(p)
		return n, 0, err
	}
	r.data.Base = unsafe.SliceData(p)
	r.data.SetLen(len(p))
	r.header.Iov, r.header.Iovlen, r.header.Control = &r.data, 1, &r.control[0]
	for {
		r.header.SetControllen(len(r.control))
		got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s), uintptr(unsafe.Pointer(&r.header)),
			unix.MSG_DONTWAIT)
		switch errno {
		case 0:
			return int(got), stampOf(&r.header), nil
		case unix.EINTR:
		default:
			return 0, 0, errno
		}
	}
}

// read is recvfrom(2), for what is read without a stamp.
func (s FD) read(p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s),
			uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// stampOf returns the stamp among a message's control data.
func stampOf(h *unix.Msghdr) int64 {
	if h.Controllen < uint64(unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{})))) {
		return 0
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(h.Control))
	if c.Level != unix.SOL_SOCKET || c.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	t := (*unix.Timespec)(unsafe.Add(unsafe.Pointer(h.Control), unix.CmsgLen(0)))
	return t.Nano()
}

// ErrAgain says that a socket has nothing to read, or no room for more to write.
const ErrAgain = unix.EAGAIN

// Write is sendto(2), which costs less than write(2): it may write less than p, or nothing with
// errAgain.
func (s FD) Write(p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s),
			uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Close closes the socket.
func (s FD) Close() {
	_ = unix.Close(int(s))
}
