package socket

import (
	"fmt"

	"github.com/redquake/redquake/internal/engine/clock"
)

// System makes what waits for events and for time: of the operating system, or of Go's channels and
// timers, which also run in virtual time.
type System struct {
	Portable bool // the connections have no file descriptors
	// called in every goroutine that wakes up, which goes on when it returns; nil = it always runs
	Stops func()
}

// WokenUp is called when a goroutine wakes up in virtual time.
func (s *System) WokenUp() {
	if s.Stops != nil {
		s.Stops()
	}
}

// NewPoller returns the platform's poller, or the portable one if the connections have no file
// descriptors.
func (s *System) NewPoller() (Poller, error) {
	if s.Portable {
		return newPortablePoller(s.WokenUp), nil
	}
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("create an event poller: %w", err)
	}
	return p, nil
}

// NewWaiter returns the platform's waiter, or the portable one if the connections have no file
// descriptors.
func (s *System) NewWaiter() (clock.Waiter, error) {
	if s.Portable {
		return clock.NewPortableWaiter(s.WokenUp), nil
	}
	w, err := clock.NewWaiter()
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	return w, nil
}
