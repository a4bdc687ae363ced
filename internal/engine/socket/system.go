package socket

import (
	"fmt"
	"runtime"
	"time"

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

// Turns lets an event loop's goroutine give up its turn now and then.
type Turns struct{ last int64 }

// turnEvery is less than the 10 ms after which the runtime preempts a goroutine, nanoseconds.
const turnEvery = int64(8 * time.Millisecond)

// Yield lets other goroutines run, unless they could a short time before the instant at. To the
// runtime, a loop that never yields is one that runs for too long, as its system calls do not
// count: it would be interrupted by a signal and lose its processor in epoll_wait a hundred times a
// second, and each time the runtime's monitor would poll every 20 us for a while, at a tenth of the
// CPU.
func (t *Turns) Yield(at int64) {
	if at-t.last > turnEvery {
		t.last = at
		runtime.Gosched()
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
