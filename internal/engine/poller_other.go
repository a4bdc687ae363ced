//go:build !linux

package engine

import (
	"errors"
	"syscall"
)

// Without epoll every connection uses a pump.

func newPoller() (poller, error) { return newPortablePoller(func() {}), nil }

type socket int

func detach(syscall.Conn) (socket, bool) { return -1, false }

// maxEvents is that of Linux: a wait here reports no sockets.
const maxEvents = 3

var errAgain = errors.ErrUnsupported

func (socket) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (socket) close()                    {}

type receiver struct{}

func (*receiver) read(socket, []byte) (int, int64, error) { return 0, 0, errors.ErrUnsupported }
