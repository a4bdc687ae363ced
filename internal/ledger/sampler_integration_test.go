//go:build integration

package ledger

import (
	"context"
	"testing"
	"time"
)

// sampling runs a sampler until the function returns.
func sampling(t *testing.T, layout func() (Layout, error), during func()) *Result {
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
		Audit:   &Audit{Discover: func(context.Context) (Layout, error) { return layout() }, Dial: dial, Wait: wait},
		Options: Options{Prefix: "rq:", Run: "r", Writer: 1 << 20, Shards: shards, ShardOf: l.ShardOf}, StaleReads: true, DualPrimary: true,
		Every: 5 * time.Millisecond, Now: func() int64 { return int64(time.Since(began)) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	during()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r := &Result{}
	s.Add(r)
	t.Logf("%+v %+v", *r.Stale, *r.Dual)
	return r
}

func TestSamplerOfAGoodReplica(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	r := sampling(t, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}), func() { time.Sleep(500 * time.Millisecond) })
	if r.Stale.Reads < 5 || r.Stale.NonMonotonic != 0 || r.Stale.RolledBack != 0 || r.Dual.Writes != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
	// A busy machine may hold a replica up, but not for the whole time.
	if r.Stale.MaxBehind > int64(400*time.Millisecond) {
		t.Errorf("behind by %v", time.Duration(r.Stale.MaxBehind))
	}
}

// TestSamplerOfAPartedReplica cuts a replica off, which then lags, and takes writes of its own.
func TestSamplerOfAPartedReplica(t *testing.T) {
	primary := startRedis(t)
	replica := startReplica(t, primary)
	r := sampling(t, static(Node{Address: primary.address, Primary: true}, Node{Address: replica.address}), func() {
		time.Sleep(200 * time.Millisecond)
		replica.do("REPLICAOF", "NO", "ONE")
		time.Sleep(600 * time.Millisecond)
	})
	if r.Stale.Stale == 0 || r.Stale.MaxWrites < 5 || r.Stale.MaxBehind < int64(300*time.Millisecond) || r.Stale.MaxBehind > int64(20*time.Second) {
		t.Errorf("%+v", *r.Stale)
	}
	if r.Dual.Writes < 5 || r.Dual.First < int64(200*time.Millisecond) || r.Dual.Last <= r.Dual.First {
		t.Errorf("%+v", *r.Dual)
	}
}

// TestSamplerOfARolledBackPrimary puts an old data set in a primary's place.
func TestSamplerOfARolledBackPrimary(t *testing.T) {
	primary := startRedis(t)
	r := sampling(t, static(Node{Address: primary.address, Primary: true}), func() {
		time.Sleep(200 * time.Millisecond)
		primary.do("FLUSHALL")
		time.Sleep(200 * time.Millisecond)
	})
	if r.Stale.RolledBack != 1 || r.Stale.Reads != 0 || r.Dual.Writes != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
}

// TestSamplerOfAFailover sees no second primary where a cluster's shard is handed over.
func TestSamplerOfAFailover(t *testing.T) {
	w, nodes := clusterWorld(t)
	r := sampling(t, w.layout, func() {
		time.Sleep(300 * time.Millisecond)
		nodes[3].do("CLUSTER", "FAILOVER")
		time.Sleep(1500 * time.Millisecond)
	})
	if r.Dual.Writes != 0 || r.Stale.Reads == 0 || r.Stale.RolledBack != 0 {
		t.Errorf("%+v %+v", *r.Stale, *r.Dual)
	}
}
