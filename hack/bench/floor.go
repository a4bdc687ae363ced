package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const floorCommand = "floor"

// floor is the least that a load generator of one thread can do: it writes the requests, waits in
// epoll, and counts the bytes of the replies, by system calls that Go's scheduler does not see.
// Nothing is planned, parsed or recorded.
func floor(own string) tool {
	return tool{
		name:    nameFloor,
		can:     func(w *work) bool { return !w.open() && !w.secured && w.shards == 0 },
		keys:    "rq:%06d",
		version: runtime.Version(),
		args: func(w *work) []string {
			return []string{
				own, floorCommand, "-port", strconv.Itoa(w.port), "-requests", strconv.Itoa(w.requests),
				"-connections", strconv.Itoa(w.connections), "-pipeline", strconv.Itoa(w.pipeline),
				"-value-bytes", strconv.Itoa(w.valueBytes), "-get=" + strconv.FormatBool(w.get),
			}
		},
		read: func(_ *work, stdout []byte) (figures, error) {
			var out floorResult
			err := json.Unmarshal(stdout, &out)
			return figures{requests: out.Requests, perSecond: out.PerSecond}, err
		},
	}
}

type floorResult struct {
	Requests  int
	PerSecond float64
}

// floorLoop is the loop of the floor: each connection sends a batch when the one before is answered.
type floorLoop struct {
	epoll       int
	conns       []floorConn
	pipeline    int
	replyBytes  int    // of one request
	out, in     []byte // out is a batch, in which only the keys' numbers change
	numberAt    []int  // where they are in it
	left, ended int    // requests
	total       int
	random      *rand.Rand
}

type floorConn struct{ fd, awaited int } // bytes

func runFloor(_ context.Context, args []string) error {
	flags := flag.NewFlagSet(floorCommand, flag.ContinueOnError)
	port := flags.Int("port", 0, "on loopback")
	requests := flags.Int("requests", 0, "over all connections, whole batches for each")
	connections := flags.Int("connections", 1, "to the server")
	pipeline := flags.Int("pipeline", 1, "requests of a batch")
	size := flags.Int("value-bytes", 32, "of each value")
	get := flags.Bool("get", false, "GET instead of SET")
	if err := flags.Parse(args); err != nil {
		return err
	}
	runtime.LockOSThread()
	l := &floorLoop{
		pipeline:   *pipeline,
		replyBytes: len("+OK\r\n"),
		in:         make([]byte, 64<<10),
		left:       *requests,
		total:      *requests,
		random:     rand.New(rand.NewPCG(uint64(os.Getpid()), 1)),
	}
	if *get {
		l.replyBytes = len(fmt.Sprintf("$%d\r\n", *size)) + *size + len("\r\n")
	}
	value := strings.Repeat("x", *size)
	for range *pipeline {
		request := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$9\r\nrq:000000\r\n$%d\r\n%s\r\n", *size, value)
		if *get {
			request = "*2\r\n$3\r\nGET\r\n$9\r\nrq:000000\r\n"
		}
		l.numberAt = append(l.numberAt, len(l.out)+strings.Index(request, "000000"))
		l.out = append(l.out, request...)
	}
	if err := l.connect(*port, *connections); err != nil {
		return err
	}
	began := time.Now()
	if err := l.run(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(floorResult{
		Requests:  l.ended,
		PerSecond: float64(l.ended) / time.Since(began).Seconds(),
	})
}

func (l *floorLoop) connect(port, connections int) (err error) {
	if l.epoll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	for i := range connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		err = errors.Join(unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd,
				&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(i)}))
		if err != nil {
			return err
		}
		l.conns = append(l.conns, floorConn{fd: fd})
	}
	return nil
}

// run sends all requests, and reads their replies.
func (l *floorLoop) run() error {
	for i := range l.conns {
		if err := l.send(&l.conns[i]); err != nil {
			return err
		}
	}
	var events [128]unix.EpollEvent
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll),
			uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), ^uintptr(0), 0, 0)
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("epoll_wait: %w", errno)
		}
		for i := range int(n) {
			more, err := l.receive(&l.conns[events[i].Fd])
			if err != nil || !more {
				return err
			}
		}
	}
}

// send sends the next batch of a connection, if one is left.
func (l *floorLoop) send(c *floorConn) error {
	if l.left == 0 {
		return nil
	}
	for _, at := range l.numberAt {
		for n, i := l.random.Uint32N(keys), at+5; i >= at; i-- {
			l.out[i] = byte('0' + n%10)
			n /= 10
		}
	}
	l.left -= l.pipeline
	c.awaited = l.pipeline * l.replyBytes
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&l.out[0])),
		uintptr(len(l.out)), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 || int(n) != len(l.out) {
		return fmt.Errorf("send: %d of %d bytes, %w", n, len(l.out), errno)
	}
	return nil
}

// receive reads what has arrived on a connection, and sends the next batch if that was all. It
// returns false after the last reply of the load.
func (l *floorLoop) receive(c *floorConn) (bool, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&l.in[0])),
			uintptr(len(l.in)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EAGAIN:
			return true, nil
		case errno != 0:
			return false, fmt.Errorf("recv: %w", errno)
		case n == 0 || int(n) > c.awaited || l.in[0] == '-' || l.in[0] == '$' && l.in[1] == '-':
			return false, fmt.Errorf("%d bytes of %d that were awaited: %.80q", n, c.awaited, l.in[:n])
		}
		if c.awaited -= int(n); c.awaited == 0 {
			l.ended += l.pipeline
			return l.ended < l.total, l.send(c)
		}
		if int(n) < len(l.in) {
			return true, nil
		}
	}
}
