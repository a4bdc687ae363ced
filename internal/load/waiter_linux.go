package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waiter sleeps until an instant with a precision of some ten microseconds, for one goroutine at a time, and can be interrupted.
//
// It reads a timerfd through Go's network poller: epoll wakes when the kernel's high-resolution timer fires, whereas Go's own timers reach
// epoll_wait as whole milliseconds, and a nanosleep(2) would hold a thread and, until sysmon takes it away, a processor of GOMAXPROCS.
// Measured by BenchmarkWaiter.
type waiter struct {
	file *os.File
	fd   int
}

func newWaiter() (*waiter, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &waiter{file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

// wait sleeps for d; it returns false when it was interrupted.
func (w *waiter) wait(d time.Duration) bool {
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

// interrupt ends the present wait and all later ones.
func (w *waiter) interrupt() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

func (w *waiter) close() { _ = w.file.Close() }
