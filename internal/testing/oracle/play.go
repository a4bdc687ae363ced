package oracle

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Played is what the load engine recorded of a history.
type Played struct {
	Plan   *plan.Plan
	Series *merged.Series
	Ledger *record.Ledger // nil without one
	Lost   int            // acknowledged ledger writes that the servers have lost
}

const (
	interval    = 100 * time.Millisecond
	connections = 20 // of each load pod to each shard
	ledgerName  = "ledger:"
)

// Play plays a history in virtual time: it must be called in a bubble of testing/synctest.
func Play(t *testing.T, h *History) *Played {
	t.Helper()
	w := newWorld(t, h)
	p := h.plan()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	runners := make([]*engine.Runner, h.Pods)
	for pod := range runners {
		g := &w.generators[pod]
		options := []engine.Option{engine.WithDialer(g.dialer(w.network.Dial)), engine.WithStops(g.wait)}
		if h.Shards > 1 {
			options = append(options, engine.WithLayout(w.layout()))
		}
		r, err := engine.New(p, pod, options...)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Prepare(ctx, nil); err != nil {
			t.Fatal(err)
		}
		runners[pod] = r
	}
	w.start = time.Now().Add(50 * time.Millisecond)
	s := merged.New(p.Run, w.start, p.Interval, p.Operations(), h.Pods)
	s.SetReadOnly(p.ReadOnly())
	for pod := range w.generators {
		w.generators[pod].begin(w.start.Add(h.Baseline), pod, h.Events)
	}
	w.run(ctx, t, runners, s)
	for pod := range h.Pods {
		s.Finish(pod)
	}
	played := &Played{Plan: p, Series: s, Lost: w.lost}
	if h.Ledger > 0 {
		for _, r := range runners {
			one, err := r.Verify(ctx, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			played.Ledger = record.MergeLedgers(played.Ledger, one)
		}
	}
	for pod := range w.generators {
		w.generators[pod].end()
	}
	return played
}

// run runs the load generators while the events happen.
func (w *world) run(ctx context.Context, t *testing.T, runners []*engine.Runner, s *merged.Series) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for pod, r := range runners {
		all.Go(func() {
			err := r.Run(ctx, w.start, func(iv *record.Interval) {
				mu.Lock()
				defer mu.Unlock()
				at := time.Duration(iv.Index+1) * interval
				if at%time.Second == 0 {
					use := w.generators[pod].use(at, w.h.Baseline)
					use.Pod = pod
					iv.Agents = []record.AgentUse{use}
				}
				if err := s.Add(pod, iv); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	w.happen()
	all.Wait()
}

// plan is the load of a history.
func (h *History) plan() *plan.Plan {
	p := &plan.Plan{
		Run: "oracle", Pods: h.Pods, Interval: interval,
		Client: plan.Client{
			Connections:    connections,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: h.Timeout,
			Protocol:       3,
		},
		Shape: plan.Shape{
			Rate:     h.Rate,
			Users:    h.Users,
			Duration: h.Baseline + h.Observed,
		},
		Workload: plan.Workload{
			Keyspace: plan.Keyspace{Prefix: "oracle:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
	}
	for shard := range h.Shards {
		p.Target.Addresses = append(p.Target.Addresses, address(shard))
	}
	if h.Shards > 1 {
		p.Target.Topology = plan.TopologyCluster
	}
	if h.Writes > 0 {
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{
			Name:   "set",
			Weight: h.Writes,
			Words:  []string{"SET", "{key}", "{value}"},
		})
	}
	if h.Reads > 0 {
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{
			Name:   "get",
			Weight: h.Reads,
			Words:  []string{"GET", "{key}"},
		})
	}
	if h.Probe > 0 {
		p.Probe = plan.Probe{Rate: h.Probe, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}}
	}
	if h.Ledger > 0 {
		p.Verify = &plan.Verify{Share: h.Ledger}
	}
	return p
}

func address(shard int) string {
	return fmt.Sprintf("10.0.0.%d:6379", shard+1)
}

// world are the servers and load generators of a history.
type world struct {
	h          *History
	network    *memnet.Network
	servers    []*memredis.Server
	generators []generator
	start      time.Time
	active     [][wayCount]int             // by shard: how many events of each way are going on
	level      []map[int]float64           // by shard and event: what is left of the level
	snapshots  map[int][]map[string]string // by event: the ledger's keys of each shard when a loss began
	lost       int
}

func newWorld(t *testing.T, h *History) *world {
	w := &world{
		h:          h,
		network:    memnet.New(),
		generators: make([]generator, h.Pods),
		active:     make([][wayCount]int, h.Shards),
		snapshots:  map[int][]map[string]string{},
	}
	for shard := range h.Shards {
		w.servers = append(w.servers, memredis.Start(t, w.network, address(shard), memredis.Options{Cost: h.Cost}))
		w.level = append(w.level, map[int]float64{})
	}
	return w
}

// layout gives each shard an equal part of the slots.
func (w *world) layout() *topology.Map {
	var shards []topology.Shard
	var ranges []topology.SlotRange
	n := topology.SlotCount / len(w.servers)
	for shard, s := range w.servers {
		last := (shard+1)*n - 1
		if shard == len(w.servers)-1 {
			last = topology.SlotCount - 1
		}
		shards = append(shards, topology.Shard{Primary: s.Address()})
		ranges = append(ranges, topology.SlotRange{First: uint16(shard * n), Last: uint16(last), Shard: shard})
	}
	return topology.NewMap(topology.KindCluster, 1, shards, ranges...)
}

// change is the begin, a step, or the end of an event.
type change struct {
	at time.Duration // from t0
	do func()
}

// happen makes the events happen, until the last has ended.
func (w *world) happen() {
	var changes []change
	for i, e := range w.h.Events {
		switch e.Way {
		case Stall, Starve: // the generators know
		case Drift:
			for at := e.At; at < e.end(); at += interval {
				left := 1 - float64(at-e.At)/float64(e.For)
				changes = append(changes, change{at, func() { w.setLevel(i, e.Only, 1/(1+e.Share*left)) }})
			}
			changes = append(changes, change{e.end(), func() { w.setLevel(i, e.Only, 1) }})
		case Lower:
			changes = append(changes, change{e.At, func() {
				w.setLevel(i, e.Only,
					1-e.Share)
			}}, change{e.end(), func() { w.setLevel(i, e.Only, 1) }})
		case Lose:
			changes = append(changes, change{e.At, func() { w.keep(i) }}, change{e.end(), func() { w.lose(i) }})
		default:
			changes = append(changes, change{e.At, func() { w.count(e, 1) }}, change{e.end(), func() { w.count(e, -1) }})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	for _, c := range changes {
		if c.at > w.h.Observed {
			return // the load is over
		}
		time.Sleep(time.Until(w.start.Add(w.h.Baseline + c.at)))
		c.do()
	}
}

// count begins an event, or ends it.
func (w *world) count(e Event, by int) {
	for shard, s := range w.servers {
		if e.Only != All && e.Only != shard {
			continue
		}
		active := &w.active[shard]
		active[e.Way] += by
		on := active[e.Way] > 0
		switch e.Way {
		case Stop:
			if on {
				s.Stop()
			} else {
				s.Continue()
			}
		case Hold, Refuse:
			if e.Way == Refuse && by > 0 {
				w.network.Cut(s.Address()) // first, so that nothing that is held gets through
			}
			w.network.Set(s.Address(), modeOf(active))
			if e.Way == Refuse && by > 0 {
				w.network.Cut(s.Address()) // what was dialled meanwhile
			}
		case Loading:
			s.SetLoading(on)
		case ReadOnly:
			s.SetReadOnly(on)
		case FailReads:
			reply := ""
			if on {
				reply = "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
			}
			s.Answer("GET", reply)
		}
	}
}

func modeOf(active *[wayCount]int) memnet.Mode {
	switch {
	case active[Refuse] > 0:
		return memnet.Refuse
	case active[Hold] > 0:
		return memnet.Hold
	}
	return memnet.Pass
}

// setLevel sets what an event leaves of the level.
func (w *world) setLevel(event, only int, left float64) {
	for shard, s := range w.servers {
		if only != All && only != shard {
			continue
		}
		w.level[shard][event] = left
		cost := float64(w.h.Cost)
		for _, left := range w.level[shard] {
			cost /= left
		}
		s.SetCost(time.Duration(cost))
	}
}

// keep remembers the ledger as it is.
func (w *world) keep(event int) {
	for _, s := range w.servers {
		kept := map[string]string{}
		for _, key := range s.Keys(ledgerName) {
			kept[key], _ = s.Get(key)
		}
		w.snapshots[event] = append(w.snapshots[event], kept)
	}
}

// lose makes the ledger what it was when the event began.
func (w *world) lose(event int) {
	for shard, s := range w.servers {
		for _, key := range s.Keys(ledgerName) {
			now, _ := s.Get(key)
			before := w.snapshots[event][shard][key]
			before += strings.Repeat("\x00", max(0, len(now)-len(before))) // a bitmap that has grown meanwhile
			w.lost += ones(now) - ones(before)
			s.Put(key, before)
		}
	}
}

func ones(s string) (n int) {
	for i := range len(s) {
		n += bits.OnesCount8(s[i])
	}
	return n
}
