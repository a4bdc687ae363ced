package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// TestStops: a process that is stopped from 0.3 s to 0.55 s sends nothing then, records nothing, and notes the stall
// from the next arrival on.
func TestStops(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Shape = plan.Shape{Rate: 1000, Duration: time.Second}
		var from, to time.Time
		stopped := func() {
			if now := time.Now(); !now.Before(from) && now.Before(to) {
				time.Sleep(to.Sub(now))
			}
		}
		r := prepared(t, p, w.dialled(), WithStops(stopped))
		o, sink := collect(t)
		start := time.Now().Add(20 * time.Millisecond)
		from, to = start.Add(300*time.Millisecond), start.Add(550*time.Millisecond)
		late := 0
		if err := r.Run(t.Context(), start, func(iv *record.Interval) {
			if time.Now().Before(to) && iv.Index >= 3 {
				late++
			}
			sink(iv)
		}); err != nil {
			t.Fatal(err)
		}
		if got := o.perInterval(3, 6, succeeded); got[0] != 0 || got[1] != 0 || got[2] != 300 || late > 0 {
			t.Errorf("%d requests succeeded in each 0.1 s from 0.3 s on, %d intervals were recorded meanwhile", got, late)
		}
		var stalls []record.Stall
		for _, iv := range o.intervals {
			stalls = append(stalls, iv.Stalls...)
		}
		// a request was due
		want := record.Stall{From: int64(300*time.Millisecond + 500*time.Microsecond), To: int64(550 * time.Millisecond)}
		if len(stalls) != 1 || stalls[0] != want {
			t.Errorf("stalls %v, want %v", stalls, want)
		}
	})
}

// TestLayout: the requests go to the servers of the given map, by their keys, and are counted for their shards.
func TestLayout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		p := bare()
		p.Target = plan.Target{Topology: plan.TopologyCluster}
		p.Shape = plan.Shape{Rate: 1000, Duration: time.Second}
		var shards []topology.Shard
		for i := range 2 {
			s := memredis.Start(t, network, fmt.Sprintf("10.0.0.%d:6379", i+1), memredis.Options{})
			shards, p.Target.Addresses = append(shards, topology.Shard{Primary: s.Address()}), append(p.Target.Addresses,
				s.Address())
		}
		m := topology.NewMap(topology.KindCluster, 1, shards, topology.SlotRange{Last: 8191}, topology.SlotRange{
			First: 8192,
			Last:  topology.SlotCount - 1,
			Shard: 1,
		})
		o := runPlan(t, p, WithDialer(network.Dial), WithLayout(m))
		var of [2]uint64
		for _, iv := range o.intervals {
			for i, s := range iv.Shards {
				of[i] += s.OK
			}
		}
		if of[0]+of[1] != 1000 || of[0] < 400 || of[1] < 400 {
			t.Errorf("%d requests succeeded at the shards", of)
		}
	})
}
