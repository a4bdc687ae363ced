package engine

import (
	"errors"
	"time"
)

// poller waits for sockets, for an instant and for a wake-up from elsewhere, for one goroutine at a time.
type poller interface {
	// add watches a socket until it is closed.
	add(fd int, e event) error
	// wait returns what is ready, at the latest at the instant until, or when wake was called; now and until are on one clock, in nanoseconds.
	// It may also return without anything. The list is valid until the next call.
	wait(now, until int64) []event
	// wake ends the present wait, or the next one. Any goroutine may call it.
	wake()
	close()
}

// event says that the connection with this number can be read, or has ended.
type event struct{ number, generation int32 }

// portablePoller waits on channels alone, and watches no socket: every connection is pumped.
type portablePoller struct {
	waker chan struct{}
	timer *time.Timer
}

func newPortablePoller() *portablePoller {
	return &portablePoller{waker: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}

func (p *portablePoller) add(int, event) error { return errors.ErrUnsupported }

func (p *portablePoller) wait(now, until int64) []event {
	// At least 1 ns: what is due now in whole nanoseconds may be due a fraction later, and where time passes only while all wait (testing/synctest) a loop
	// that does not wait would never get there.
	p.timer.Reset(time.Duration(max(until-now, 1)))
	select {
	case <-p.timer.C:
	case <-p.waker:
	}
	return nil
}

func (p *portablePoller) wake() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *portablePoller) close() { p.timer.Stop() }
