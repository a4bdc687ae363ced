package clock

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerfd is a waiter with a precision of about ten microseconds.
//
// It reads a timerfd through Go's network poller: epoll wakes when the kernel's high-resolution
// timer fires, whereas Go's own timers reach epoll_wait as whole milliseconds, and a nanosleep(2)
// would hold a thread and, until sysmon takes it away, a processor of GOMAXPROCS.
// Measured by BenchmarkWaiter.
type timerfd struct {
	file *os.File
	fd   int
}

// NewWaiter returns the waiter of the operating system.
func NewWaiter() (Waiter, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &timerfd{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

func (w *timerfd) Wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	err := unix.TimerfdSettime(w.fd, 0, &spec, nil)
	if err != nil {
		return false
	}
	var expirations [8]byte
	_, err = w.file.Read(expirations[:])
	return err == nil
}

func (w *timerfd) Interrupt() {
	_ = w.file.SetReadDeadline(time.Unix(1, 0))
}

func (w *timerfd) Close() {
	_ = w.file.Close()
}
