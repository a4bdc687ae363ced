//go:build !linux

package load

import (
	"errors"
	"syscall"
	"time"
)

// poller waits for an instant or a wake-up. Where there is no epoll every connection is pumped.
type poller struct {
	waker chan struct{}
	timer *time.Timer
}

type event struct{ number, generation int32 }

func newPoller() (*poller, error) {
	return &poller{waker: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}, nil
}

func (p *poller) add(int, event) error { return errors.ErrUnsupported }

func (p *poller) wait(now, until int64) []event {
	p.timer.Reset(time.Duration(until - now))
	select {
	case <-p.timer.C:
	case <-p.waker:
	}
	return nil
}

func (p *poller) wake() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *poller) close() { p.timer.Stop() }

type socket int

func detach(syscall.Conn) (socket, bool) { return -1, false }

var errAgain = errors.ErrUnsupported

func (socket) read([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (socket) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (socket) close()                    {}
