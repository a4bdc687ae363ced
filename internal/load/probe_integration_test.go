//go:build integration

package load

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/topology"
)

// TestProbeFollowsADemotedPrimary: a primary that a failover demotes keeps its clients and refuses their writes, for as long as they stay. The probe leaves.
func TestProbeFollowsADemotedPrimary(t *testing.T) {
	const length, at = 8 * time.Second, 2 * time.Second
	cluster := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	replication := redistest.NewReplication(t, 1, redistest.Options{})
	for name, d := range map[string]struct {
		plan *plan.Plan
		fail func()
	}{
		"cluster": {followPlan(plan.TopologyCluster, cluster.Addresses(), 300, length), func() { cluster.Failover(cluster.Shards[0][1]) }},
		"replication": {followPlan(plan.TopologyReplication, replication.Addresses(), 300, length), func() {
			replication.FailoverTo(replication.Primary, replication.Replicas[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := duringRun(t, d.plan, at, d.fail)
			defer r.forgetDeployment()
			if gap := longestGap(o.probeGaps); gap > (length-at)/2 {
				t.Errorf("the probe had no success for %s, the load for %s", gap, longestGap(o.gaps))
			}
			if o.probe.OK == 0 {
				t.Error("the probe had no success")
			}
		})
	}
}

// TestProbeLeavesAHungPrimary: dials that hang at a primary that stands still do not keep the probe from the new one.
func TestProbeLeavesAHungPrimary(t *testing.T) {
	hung, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	server := redistest.NewServer(t, redistest.Options{})
	p := testPlan(hung.Addr().String())
	p.Client.DialTimeout, p.Client.RequestTimeout, p.Shape.Duration = time.Minute, time.Minute, time.Minute
	r, err := New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	layout := &fixedMap{}
	layout.set(hung.Addr().String())
	r.run.routes.tracker, r.run.start = layout, time.Now()
	probe := r.probes[0]
	if err := probe.prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { probe.loop(ctx) })
	defer all.Wait()
	defer cancel()
	redistest.Wait(t, "as many dials hang as may", func() error {
		if n := sumOf(probe, func(s *slot) uint64 { return s.ops[0].Dropped }); n == 0 {
			return errNoAddress
		}
		return nil
	})
	layout.set(server.Address())
	redistest.Wait(t, "the probe has success at the other server", func() error {
		if n := sumOf(probe, func(s *slot) uint64 { return s.ops[0].OK }); n == 0 {
			return errNoAddress
		}
		return nil
	})
}

// sumOf sums what the probe has recorded: its intervals stay open here.
func sumOf(p *prober, of func(*slot) uint64) uint64 {
	shard := p.run.rec.probe
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return of(shard.slots[0]) + of(shard.slots[1])
}

// fixedMap is a Tracker of one primary that a test names.
type fixedMap struct{ m atomic.Pointer[topology.Map] }

func (f *fixedMap) set(primary string) {
	f.m.Store(topology.NewMap(topology.KindReplication, 0, []topology.Shard{{Primary: primary}}))
}

func (f *fixedMap) Map() *topology.Map           { return f.m.Load() }
func (f *fixedMap) Refresh(string)               {}
func (f *fixedMap) Moved(uint16, string)         {}
func (f *fixedMap) OnChange(func(*topology.Map)) {}
func (f *fixedMap) Close()                       {}
