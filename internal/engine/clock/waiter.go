package clock

import (
	"sync"
	"time"
)

// Waiter is an interruptible sleep with high precision. One goroutine at a time may wait.
type Waiter interface {
	// Wait sleeps for d; it returns false if it was interrupted.
	Wait(d time.Duration) bool
	// Interrupt ends the current wait and all later ones.
	Interrupt()
	// Close ends the current wait, and frees what the waiter uses.
	Close()
}

// portableWaiter has the precision of Go's timers.
type portableWaiter struct {
	once sync.Once
	done chan struct{}
	woke func() // called at the end of each wait
}

// NewPortableWaiter returns a waiter with the precision of Go's timers, which runs in virtual time.
// It calls woke at the end of each wait.
func NewPortableWaiter(woke func()) Waiter {
	return &portableWaiter{done: make(chan struct{}), woke: woke}
}

func (w *portableWaiter) Wait(d time.Duration) bool {
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

func (w *portableWaiter) Close() {
	w.Interrupt()
}

func (w *portableWaiter) Interrupt() {
	w.once.Do(func() { close(w.done) })
}
