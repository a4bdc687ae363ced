package engine

import (
	"sync"
	"time"
)

// waiter is an interruptible sleep with high precision. One goroutine at a time may wait.
type waiter interface {
	// wait sleeps for d; it returns false if it was interrupted.
	wait(d time.Duration) bool
	// interrupt ends the current wait and all later ones.
	interrupt()
	close()
}

// portableWaiter has the precision of Go's timers.
type portableWaiter struct {
	once sync.Once
	done chan struct{}
	woke func() // called at the end of each wait
}

func newPortableWaiter(woke func()) *portableWaiter {
	return &portableWaiter{done: make(chan struct{}), woke: woke}
}

func (w *portableWaiter) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	defer w.woke()
	select {
	case <-timer.C:
		return true
	case <-w.done:
		return false
	}
}

func (w *portableWaiter) close() { w.interrupt() }

func (w *portableWaiter) interrupt() { w.once.Do(func() { close(w.done) }) }
