//go:build integration

package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// sampling runs a sampler until the function returns.
func sampling(t *testing.T, layout func() (Layout, error), during func()) *record.Ledger {
	t.Helper()
	began := time.Now()
	l, err := layout()
	if err != nil {
		t.Fatal(err)
	}
	shards := 1
	for _, n := range l.Nodes {
		shards = max(shards, n.Shard+1)
	}
	s := &Sampler{
		Audit:       &Audit{Discover: func(context.Context) (Layout, error) { return layout() }, Dial: dial, Wait: wait},
		Options:     Options{Prefix: "rq:", Run: "r", Writer: 1 << 20, Shards: shards, ShardOf: l.ShardOf},
		StaleReads:  true,
		DualPrimary: true,
		Every:       5 * time.Millisecond,
		Now:         func() int64 { return int64(time.Since(began)) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	during()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r := &record.Ledger{}
	s.Add(r)
	t.Logf("%+v %+v", *r.Stale, *r.Dual)
	return r
}

// rounds waits until the server has executed this number of further writes, of which a sampler makes at least one per
// round.
func rounds(t *testing.T, server *redistest.Server, n int) {
	t.Helper()
	before := server.Calls("set")
	await.Until(t, "the sampler's writes", func() error {
		if now := server.Calls("set"); now < before+n {
			return fmt.Errorf("%d of %d", now-before, n)
		}
		return nil
	})
}

func TestSamplerOfAHealthyReplica(t *testing.T) { redistest.Each(t, testSamplerOfAHealthyReplica) }

func testSamplerOfAHealthyReplica(t *testing.T) {
	t.Parallel()
	d := redistest.SharedReplication(t, 1)
	r := sampling(t, of(d), func() { rounds(t, d.Primary, 50) })
	if r.Stale.Reads == 0 || r.Stale.NonMonotonic != 0 || r.Stale.RolledBack != 0 || r.Dual.Writes != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
}

// TestSamplerOfADisconnectedReplica disconnects a replica, which then lags and accepts its own writes.
func TestSamplerOfADisconnectedReplica(t *testing.T) {
	t.Parallel()
	d := redistest.NewReplication(t, 1, redistest.Options{})
	replica := d.Replicas[0]
	r := sampling(t, of(d), func() {
		rounds(t, d.Primary, 20)
		replica.Do("replicaof", "no", "one")
		rounds(t, replica, 60) // its own writes
	})
	if r.Stale.Stale < 10 || r.Stale.MaxWrites < 10 || r.Stale.MaxBehind < int64(50*time.Millisecond) {
		t.Errorf("%+v", *r.Stale)
	}
	if r.Dual.Writes < 10 || r.Dual.First <= 0 || r.Dual.Last <= r.Dual.First {
		t.Errorf("%+v", *r.Dual)
	}
}

// TestSamplerOfARolledBackPrimary restarts a primary without its data.
func TestSamplerOfARolledBackPrimary(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	r := sampling(t, static(Node{Address: primary.Address(), Primary: true}), func() {
		rounds(t, primary, 20)
		primary.Restart()
		rounds(t, primary, 20)
	})
	if r.Stale.RolledBack != 1 || r.Stale.Reads != 0 || r.Dual.Writes != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
}

// TestSamplerOfAFailover reports no second primary during the failover of a cluster's shard.
func TestSamplerOfAFailover(t *testing.T) { redistest.Each(t, testSamplerOfAFailover) }

func testSamplerOfAFailover(t *testing.T) {
	t.Parallel()
	w, d := clusterWorld(t)
	promoted := d.Shards[0][1]
	r := sampling(t, w.layout, func() {
		rounds(t, d.Shards[0][0], 20)
		d.Failover(promoted)
		rounds(t, promoted, 100)
	})
	if r.Dual.Writes != 0 || r.Stale.Reads == 0 || r.Stale.RolledBack != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
}
