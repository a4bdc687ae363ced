package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// The pace of reconnecting. A new attempt begins while older ones still hang in TCP: after a pod's death its address swallows SYNs, and one
// hanging dial must not put a floor under the outage that is measured. Once TCP stands the server itself is slow, and more dials would only be a
// herd that it has to work off when it is back, or that overflows its backlog.
const (
	backoffFirst = time.Millisecond
	backoffLast  = 50 * time.Millisecond
	hedgeAfter   = 100 * time.Millisecond
)

// attempt is how one dial ended.
type attempt struct {
	line  line
	err   error
	began time.Time
}

// connect dials until a connection stands or ctx ends (then the error is ctx's). It starts at once; attempts that fail begin 1 ms apart, doubling
// to 50 ms, with jitter; while all attempts hang in TCP it starts another every 50 to 150 ms, up to timeout/100ms at a time. The first to succeed
// wins, the others are cancelled. failed is called for each attempt that failed, from the caller's goroutine; it may be nil.
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
			timer.Reset(hedgeAfter/2 + rand.N(hedgeAfter)) // connections that broke together do not dial in step
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
			// The backoff counts from the attempt's beginning: one that hung for longer has waited enough.
			timer.Reset(max(0, jitter(backoff)-time.Since(a.began)))
			backoff = min(2*backoff, backoffLast)
		}
	}
}

// try makes one attempt and hands the result over, or closes it when nobody wants it any more.
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

// takeHedge takes a token for one more attempt at the same time, if there is one left: thousands of connections that all dial a black hole
// must not exhaust the ports.
func (d *dialer) takeHedge() bool {
	select {
	case d.hedges <- struct{}{}:
		return true
	default:
		return false
	}
}

// jitter is a random time between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
