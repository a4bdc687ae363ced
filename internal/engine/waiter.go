package engine

import (
	"sync"
	"time"
)

// waiter sleeps until an instant, for one goroutine at a time, and can be interrupted.
type waiter interface {
	// wait sleeps for d; it returns false when it was interrupted.
	wait(d time.Duration) bool
	// interrupt ends the present wait and all later ones.
	interrupt()
	close()
}

// portableWaiter is as precise as Go's timers.
type portableWaiter struct {
	once sync.Once
	done chan struct{}
}

func newPortableWaiter() *portableWaiter { return &portableWaiter{done: make(chan struct{})} }

func (w *portableWaiter) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.done:
		return false
	}
}

func (w *portableWaiter) close() { w.interrupt() }

func (w *portableWaiter) interrupt() { w.once.Do(func() { close(w.done) }) }
