//go:build !linux

package socket

import (
	"errors"
	"syscall"
)

// Without epoll every connection uses a pump.

func newPoller() (Poller, error) {
	return newPortablePoller(func() {}), nil
}

// FD is not used: every connection has a pump.
type FD int

// Detach detaches no connection.
func Detach(syscall.Conn) (FD, bool) {
	return -1, false
}

// MaxEvents is that of Linux: a wait here reports no sockets.
const MaxEvents = 3

// ErrAgain is not returned.
var ErrAgain = errors.ErrUnsupported

// Write fails.
func (FD) Write([]byte) (int, error) {
	return 0, errors.ErrUnsupported
}

// Close does nothing.
func (FD) Close() {}

// Receiver is not used.
type Receiver struct{}

// Read fails.
func (*Receiver) Read(FD, []byte) (int, int64, error) {
	return 0, 0, errors.ErrUnsupported
}
