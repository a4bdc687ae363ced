package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

const (
	fewPings  = 5
	manyPings = 20
	// retransmission is the least delay by a lost packet: Linux retransmits after 200 ms at the
	// earliest.
	retransmission = 150 * time.Millisecond
	// pingDistance has spaced PINGs cover five periods in which Linux divides the CPU of a container,
	// of 100 ms each.
	pingDistance = 25 * time.Millisecond
)

// pings times n round trips, and ends early after one longer than enough; 0 = none is. Those until
// an error are returned with it.
func (c chaosMesh) pings(
	ctx context.Context, target *v1alpha1.FaultTarget, n int, enough time.Duration,
) ([]time.Duration, error) {
	var trips []time.Duration
	for range n {
		began := time.Now()
		_, err := c.Servers.Do(ctx, target.Address, c.Login, "PING")
		if err != nil {
			return trips, err
		}
		trips = append(trips, time.Since(began))
		took := trips[len(trips)-1]
		if enough > 0 && took > enough {
			break
		}
	}
	return trips, nil
}

// spacedPings times round trips that begin at some distance of each other. A container that has used
// up its CPU stands still for the rest of a period: of PINGs one after another only one would meet
// that, as the next one is served at once.
func (c chaosMesh) spacedPings(
	ctx context.Context, target *v1alpha1.FaultTarget,
) ([]time.Duration, error) {
	var trips []time.Duration
	for range manyPings {
		one, err := c.pings(ctx, target, 1, 0)
		if err != nil {
			return nil, err
		}
		trips = append(trips, one...)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pingDistance):
		}
	}
	return trips, nil
}

// clock measures by how much the server's clock is ahead of the operator's, and the round trip of
// the command.
func (c chaosMesh) clock(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (offset, trip time.Duration, err error) {
	began := time.Now()
	reply, err := c.Servers.Do(ctx, target.Address, c.Login, "TIME")
	if err != nil {
		return 0, 0, err
	}
	trip = time.Since(began)
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0, 0, fmt.Errorf("TIME at %s: unexpected reply %v", target.Address, reply)
	}
	seconds, bad := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
	micros, bad2 := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
	if bad != nil || bad2 != nil {
		return 0, 0, fmt.Errorf("TIME at %s: unexpected reply %v", target.Address, reply)
	}
	return time.Unix(seconds, micros*1000).Sub(began.Add(trip / 2)), trip, nil
}

// fsyncs reports whether the append-only file is on, and how many of its fsyncs were late since the
// server's start.
func (c chaosMesh) fsyncs(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (on bool, delayed int64, err error) {
	info, err := c.Info(ctx, target.Address, "persistence")
	return info.On("aof_enabled"), info.Int("aof_delayed_fsync"), err
}

func median(trips []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(trips))
	return sorted[len(sorted)/2]
}

// slowestQuarter is how long the slowest quarter of round trips took at least.
func slowestQuarter(trips []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(trips))
	return sorted[len(sorted)*3/4]
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func round(d time.Duration) time.Duration {
	return d.Round(10 * time.Microsecond)
}
