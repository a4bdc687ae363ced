//go:build !linux

package engine

import (
	"errors"
	"syscall"
)

// Without epoll every connection uses a pump.

func newPoller() (poller, error) { return newPortablePoller(), nil }

type socket int

func detach(syscall.Conn) (socket, bool) { return -1, false }

var errAgain = errors.ErrUnsupported

func (socket) read([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (socket) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (socket) close()                    {}
