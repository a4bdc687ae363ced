package probe

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// TestProbeLeavesAHangingPrimary: dials that hang at an unresponsive primary do not keep the probe from connecting to
// the new one.
func TestProbeLeavesAHangingPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		hung := memredis.Start(t, network, "10.0.0.1:6379", memredis.Options{})
		server := memredis.Start(t, network, "10.0.0.2:6379", memredis.Options{})
		hung.Stop()
		layout := &movingPrimary{}
		layout.set(hung.Address())
		state, run := start(t, network, layout)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go run(ctx, ctx)
		time.Sleep(time.Second)
		if n := network.Conns(hung.Address()); n != maxGreetings {
			t.Errorf("%d dials hang, want %d", n, maxGreetings)
		}
		if n := closed(state, 0, 10).Dropped; n != 100-maxGreetings {
			t.Errorf("%d arrivals were dropped of 100", n)
		}
		layout.set(server.Address())
		time.Sleep(time.Second)
		if n := closed(state, 10, 20).OK; n != 100 {
			t.Errorf("%d of 100 arrivals had success at the other server", n)
		}
	})
}

// An idle connection that the server closes fails no request: the next arrival dials.
func TestProbeDropsIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, "10.0.0.1:6379", memredis.Options{})
		layout := &movingPrimary{}
		layout.set(server.Address())
		state, run := start(t, network, layout)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go run(ctx, ctx)
		time.Sleep(time.Second)
		for range 5 { // arrivals are 10 ms apart, the first is due at 5 ms
			network.Cut(server.Address())
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(900 * time.Millisecond)
		if n := closed(state, 0, 20); n.OK != 200 {
			t.Errorf("%d of 200 arrivals had success", n.OK)
		}
		if n := network.Dials(server.Address()); n != 6 {
			t.Errorf("the probe dialled %d times, want 6", n)
		}
	})
}

// start prepares a probe of 100 requests per second, and returns what runs it.
func start(
	t *testing.T, network *memnet.Network, layout *movingPrimary,
) (state *load.State, run func(ctx, probing context.Context)) {
	t.Helper()
	state = &load.State{
		Clock: clock.Clock{Start: time.Now()}, System: socket.System{Portable: true}, Timeout: int64(time.Minute),
		Recorder: interval.New(int64(100*time.Millisecond), 1, 0, 1),
		Routes:   route.Routes{Tracker: layout, Dialer: &dial.Dialer{Timeout: time.Minute, Protocol: 3, TCP: network.Dial}},
	}
	state.Plan = probePlan()
	probe, err := New(state, WholeTarget, "")
	if err != nil {
		t.Fatal(err)
	}
	loop := NewLoop(state, []*Prober{probe})
	if err := loop.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loop.Close)
	return state, loop.Run
}

// probePlan is of 100 requests per second.
func probePlan() *plan.Plan {
	return &plan.Plan{
		Pods: 1, Shape: plan.Shape{Duration: time.Minute}, Client: plan.Client{RequestTimeout: time.Minute},
		Workload: plan.Workload{
			Keyspace: plan.Keyspace{Prefix: "t:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}},
	}
}

// closed closes intervals from, from+1, ..., to-1 and adds up what the probe recorded in them.
func closed(s *load.State, from, to int64) (sum record.Counts) {
	for i := from; i < to; i++ {
		probe := s.Recorder.Close(i).Probe
		sum.OK += probe.OK
		sum.Dropped += probe.Dropped
	}
	return sum
}

// movingPrimary is a Tracker with one primary, which a test sets.
type movingPrimary struct{ m atomic.Pointer[topology.Map] }

func (f *movingPrimary) set(primary string) {
	f.m.Store(topology.NewMap(topology.KindReplication, 0, []topology.Shard{{Primary: primary}}))
}

func (f *movingPrimary) Map() *topology.Map           { return f.m.Load() }
func (f *movingPrimary) Refresh(string)               {}
func (f *movingPrimary) Moved(uint16, string) bool    { return false }
func (f *movingPrimary) OnChange(func(*topology.Map)) {}
func (f *movingPrimary) Close()                       {}
