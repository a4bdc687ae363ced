//go:build !linux

package load

import (
	"sync"
	"time"
)

// waiter sleeps until an instant, for one goroutine at a time, and can be interrupted. Outside Linux it is as precise as Go's timers.
type waiter struct {
	once sync.Once
	done chan struct{}
}

func newWaiter() (*waiter, error) { return &waiter{done: make(chan struct{})}, nil }

// wait sleeps for d; it returns false when it was interrupted.
func (w *waiter) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.done:
		return false
	}
}

// interrupt ends the present wait and all later ones.
func (w *waiter) interrupt() { w.once.Do(func() { close(w.done) }) }

func (w *waiter) close() { w.interrupt() }
