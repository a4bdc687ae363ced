// Package socket reads and writes connections in event loops: pollers, sockets outside of Go's
// scheduler with the kernel's stamps of what arrived, TLS on them, and pumps where there is no
// epoll.
package socket

import (
	"errors"
	"time"
)

// Poller waits for sockets, a deadline and wake-ups by other goroutines. One goroutine at a time
// may wait.
type Poller interface {
	// Add watches a socket until it is closed.
	Add(fd int, e Event) error
	// Wait returns the ready connections, at the latest at the instant until or when wake is called;
	// now and until are nanoseconds of one clock.
	// It may return an empty list. The list is valid until the next call.
	Wait(now, until int64) []Event
	// Sleep is Wait that what arrives does not end, but the end of a connection does: then it returns
	// false. The next Wait returns what is ready.
	Sleep(now, until int64) bool
	// Wake ends the current wait, or the next one. Any goroutine may call it.
	Wake()
	// Close frees the poller.
	Close()
}

// Event reports that the connection with this number can be read.
type Event struct {
	Number, Generation int32
	// Ended tells that nothing more will arrive. There is no further event, so that all has to be read,
	// until the end.
	Ended bool
}

// portablePoller waits on channels only and watches no socket: every connection uses a pump.
type portablePoller struct {
	waker chan struct{}
	timer *time.Timer
	woke  func() // called at the end of each wait
}

func newPortablePoller(woke func()) *portablePoller {
	return &portablePoller{
		waker: make(chan struct{}, 1),
		timer: time.NewTimer(time.Hour),
		woke:  woke,
	}
}

func (p *portablePoller) Add(int, Event) error {
	return errors.ErrUnsupported
}

func (p *portablePoller) Wait(now, until int64) []Event {
	p.Sleep(now, until)
	return nil
}

func (p *portablePoller) Sleep(now, until int64) bool {
	// At least 1 ns: an instant rounded down to nanoseconds may be a fraction later, and where time
	// advances only while all goroutines wait (testing/synctest) a loop that does not wait would never
	// reach it.
	p.timer.Reset(time.Duration(max(until-now, 1)))
	select {
	case <-p.timer.C:
	case <-p.waker:
	}
	p.woke()
	return true
}

func (p *portablePoller) Wake() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *portablePoller) Close() {
	p.timer.Stop()
}
