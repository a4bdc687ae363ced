package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Timing of reconnects. A new attempt starts while older ones are still waiting for TCP: after a pod is killed its address drops SYNs, and one
// hanging dial must not set a lower bound on the measured outage. Once TCP is established the server itself is slow; further dials would only add
// connections that it has to accept when it recovers, or overflow its backlog.
const (
	backoffFirst = time.Millisecond
	backoffLast  = 50 * time.Millisecond
	hedgeAfter   = 100 * time.Millisecond
)

// attempt is the result of one dial.
type attempt struct {
	line  line
	err   error
	began time.Time
}

// connect dials until a connection is established or ctx ends (then the error is ctx's). It starts immediately; failed attempts are retried with a
// backoff of 1 ms that doubles to 50 ms, with jitter. While all attempts are waiting for TCP it starts another one every 50 to 150 ms, up to
// timeout/100ms concurrently. The first success wins and the others are cancelled. failed is called in the caller's goroutine for each failed
// attempt; it may be nil.
func (d *dialer) connect(ctx context.Context, failed func(err error, began time.Time)) (line, error) {
	attempts, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt)
	most := max(1, int(d.timeout/hedgeAfter))
	pending, backoff, begun := 0, backoffFirst, 0
	var greeting atomic.Int64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return line{}, ctx.Err()
		case <-timer.C:
			if pending == 0 || pending < most && greeting.Load() == 0 && d.takeHedge() {
				go d.try(attempts, begun, pending > 0, &greeting, results)
				begun++
				pending++
			}
			timer.Reset(hedgeAfter/2 + rand.N(hedgeAfter)) // spreads the dials of connections that broke together
		case a := <-results:
			pending--
			if a.err == nil {
				return a.line, nil
			}
			if ctx.Err() != nil {
				return line{}, ctx.Err()
			}
			if failed != nil {
				failed(a.err, a.began)
			}
			// The backoff counts from the start of the attempt: after an attempt that hung for longer there is no further wait.
			timer.Reset(max(0, jitter(backoff)-time.Since(a.began)))
			backoff = min(2*backoff, backoffLast)
		}
	}
}

// try makes one attempt and delivers its result, or closes the connection if ctx has ended.
func (d *dialer) try(ctx context.Context, number int, hedge bool, greeting *atomic.Int64, results chan<- attempt) {
	began := time.Now()
	c, err := d.dial(ctx, number, greeting)
	if hedge {
		<-d.hedges
	}
	select {
	case results <- attempt{c, err, began}:
	case <-ctx.Done():
		if err == nil {
			_ = c.Close()
		}
	}
}

// takeHedge takes a token for one more concurrent attempt, if one is left: thousands of connections that dial an unreachable address must not
// exhaust the local ports.
func (d *dialer) takeHedge() bool {
	select {
	case d.hedges <- struct{}{}:
		return true
	default:
		return false
	}
}

// jitter returns a random duration between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
