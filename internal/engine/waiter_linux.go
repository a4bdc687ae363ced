package engine

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerfd is a waiter with a precision of about ten microseconds.
//
// It reads a timerfd through Go's network poller: epoll wakes when the kernel's high-resolution timer fires, whereas Go's own timers reach
// epoll_wait as whole milliseconds, and a nanosleep(2) would hold a thread and, until sysmon takes it away, a processor of GOMAXPROCS.
// Measured by BenchmarkWaiter.
type timerfd struct {
	file *os.File
	fd   int
}

func newWaiter() (waiter, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &timerfd{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

func (w *timerfd) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(w.fd, 0, &spec, nil); err != nil {
		return false
	}
	var expirations [8]byte
	_, err := w.file.Read(expirations[:])
	return err == nil
}

func (w *timerfd) interrupt() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

func (w *timerfd) close() { _ = w.file.Close() }
