package engine

import (
	"fmt"

	"github.com/redquake/redquake/internal/engine/clock"
)

// system makes what waits for events and for time: of the operating system, or of Go's channels and timers, which also run in virtual time.
type system struct {
	portable bool   // the connections have no file descriptors
	stops    func() // called in every goroutine that wakes up, which goes on when it returns; nil = it always runs
}

// wokenUp is called when a goroutine wakes up in virtual time.
func (s *system) wokenUp() {
	if s.stops != nil {
		s.stops()
	}
}

// newPoller returns the platform's poller, or the portable one if the connections have no file descriptors.
func (s *system) newPoller() (poller, error) {
	if s.portable {
		return newPortablePoller(s.wokenUp), nil
	}
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("create an event poller: %w", err)
	}
	return p, nil
}

// newWaiter returns the platform's waiter, or the portable one if the connections have no file descriptors.
func (s *system) newWaiter() (clock.Waiter, error) {
	if s.portable {
		return clock.NewPortableWaiter(s.wokenUp), nil
	}
	w, err := clock.NewWaiter()
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	return w, nil
}

