// Package await waits in tests for what another process makes: a server, a kubelet, a scrape, a browser, the operator.
// It is the only place for that, so that every wait has a deadline of minutes, and a failure says what was awaited and
// what was seen last.
package await

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Limit is how long a test waits, unless the limit itself is tested. It is far above what a busy machine needs, and
// costs only a test that fails.
const Limit = 2 * time.Minute

// The time between two looks is a twentieth of what the wait has taken so far, within these bounds: what comes soon is
// seen at once, and a machine that is slow is not made slower by looking.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

func pauseAfter(waited time.Duration) time.Duration {
	return min(max(waited/20, leastPause), mostPause)
}

// Until waits until check returns nil. It ends the test if that takes longer than Limit, with what is awaited and the
// last error.
func Until(t testing.TB, what string, check func() error) {
	t.Helper()
	Within(t, Limit, what, check)
}

// Within is Until with another limit, for what takes minutes, or costs time when it fails as expected.
func Within(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	err := Try(context.Background(), limit, check)
	if err != nil {
		t.Fatalf("not within %s: %s: %v", limit, what, err)
	}
}

// Try is Within for set-up without a test. It returns the last error of check at the limit, or when ctx ends. check is
// called at least once.
func Try(ctx context.Context, limit time.Duration, check func() error) error {
	for began := time.Now(); ; {
		err := check()
		waited := time.Since(began)
		if err == nil || waited > limit {
			return err
		}
		again := time.NewTimer(pauseAfter(waited))
		select {
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("%w, when %w", err, context.Cause(ctx))
		case <-again.C:
		}
	}
}

// That is nil if something is so, and otherwise an error that tells what was seen instead.
func That(so bool, seen string, args ...any) error {
	if so {
		return nil
	}
	return fmt.Errorf(seen, args...)
}

// Chan waits for a value, or for the end, of a channel.
func Chan[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case value := <-from:
		return value
	case <-limit.C:
		t.Fatalf("not within %s: %s", Limit, what)
		panic("not reached")
	}
}

// Pass lets real time pass. why says what has this length: a planted outage, a rate, a schedule; never that a result
// should be there by then.
func Pass(d time.Duration, why string) {
	if why == "" {
		panic("await.Pass needs a reason")
	}
	time.Sleep(d)
}

// Lateness sums up by how much timers of this process are late until stop is called: with 10 ms between them, what a
// quiet machine adds is less than a hundredth of the time. A test of figures that a busy machine changes learns by it
// that the machine was busy, whatever the figures are.
func Lateness() (stop func() time.Duration) {
	const between = 10 * time.Millisecond
	end, sum := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for began := time.Now(); ; began = time.Now() {
			timer := time.NewTimer(between)
			select {
			case <-end:
				timer.Stop()
				sum <- late
				return
			case <-timer.C:
				late += time.Since(began) - between
			}
		}
	}()
	return func() time.Duration { close(end); return <-sum }
}

// PassTo is Pass up to an instant.
func PassTo(at time.Time, why string) {
	Pass(time.Until(at), why)
}
