package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// slotMap is the tracker of a cluster: it applies redirections as the real one does, and counts the looks at the
// topology that are asked for.
type slotMap struct {
	mu     sync.Mutex
	shards []topology.Shard
	ranges []topology.SlotRange // later ones take precedence
	m      *topology.Map
	notify func()
	looks  atomic.Int64
}

func (s *slotMap) Map() *topology.Map {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m
}

// assign gives slots to a shard.
func (s *slotMap) assign(r topology.SlotRange) {
	s.mu.Lock()
	s.ranges = append(s.ranges, r)
	s.m = topology.NewMap(topology.KindCluster, s.m.Version+1, s.shards, s.ranges...)
	s.mu.Unlock()
	s.notify()
}

func (s *slotMap) Moved(slot uint16, to string) bool {
	s.looks.Add(1)
	s.mu.Lock()
	next, known := s.m.WithMoved(slot, to)
	changed := next != s.m
	if changed {
		next.Version = s.m.Version + 1
		s.m = next
	}
	s.mu.Unlock()
	if changed {
		s.notify()
	}
	return known
}

func (s *slotMap) Refresh(string)               { s.looks.Add(1) }
func (s *slotMap) OnChange(func(*topology.Map)) {}
func (s *slotMap) Close()                       {}

// redirecting is a cluster in memory: its nodes do not know of each other, and answer as the test tells them.
type redirecting struct {
	network *memnet.Network
	nodes   []*memredis.Server
	slots   *slotMap
}

// inCluster runs f in virtual time with a cluster of so many nodes. The first serves all slots.
func inCluster(t *testing.T, nodes int, f func(t *testing.T, w *redirecting)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &redirecting{
			network: memnet.New(),
			slots:   &slotMap{ranges: []topology.SlotRange{{Last: topology.SlotCount - 1}}, notify: func() {}},
		}
		for i := range nodes {
			node := memredis.Start(t, w.network, fmt.Sprintf("10.0.0.%d:6379", i+1), memredis.Options{
				Cost: 10 * time.Microsecond,
			})
			w.nodes = append(w.nodes, node)
			w.slots.shards = append(w.slots.shards, topology.Shard{Primary: node.Address()})
		}
		w.slots.m = topology.NewMap(topology.KindCluster, 1, w.slots.shards, w.slots.ranges...)
		f(t, w)
	})
}

// during runs the plan, and calls what at the instant after the start.
func (w *redirecting) during(t *testing.T, p *plan.Plan, after time.Duration, what func()) *outcome {
	t.Helper()
	r, err := New(p, 0, WithDialer(w.network.Dial))
	if err != nil {
		t.Fatal(err)
	}
	r.run.Routes.Tracker, r.run.Sharded = w.slots, true
	w.slots.notify = func() {
		for _, l := range r.loops {
			l.Nudge()
		}
	}
	m := w.slots.Map()
	if err := r.probeShards(m); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.loops {
		l.LayOut(m)
	}
	if err := r.establish(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(after)))
	what()
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	return o
}

// While a slot is imported, an operation of two round trips (INCR, PEXPIRE of a new window) sends ASKING before each of
// them, and reads the number that INCR returned rather than the reply to ASKING.
func TestTruthAskWithSeveralRoundTrips(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, w *redirecting) {
		const keys, requests = 5, 100
		w.nodes[0].Answer("INCR", "-ASK 5 "+w.nodes[1].Address())
		w.nodes[1].SetImporting(5, w.nodes[0].Address())
		p := bare()
		p.Workload.Commands, p.Workload.RateLimiter = nil, &plan.RateLimiter{Limit: requests, Window: time.Hour}
		p.Workload.Keyspace.Keys, p.Shape = keys, plan.Shape{Users: 2, Requests: requests}
		o := w.during(t, p, 0, func() {})
		allowed, denied := uint64(0), uint64(0)
		for _, iv := range o.intervals {
			allowed, denied = allowed+iv.Tallies[plan.TallyAllowed], denied+iv.Tallies[plan.TallyDenied]
		}
		expiring := 0
		for key := range keys {
			if w.nodes[1].Expires(fmt.Sprintf("%slimit:%d", p.Workload.Keyspace.Prefix, key)) {
				expiring++
			}
		}
		truth.Report(t, "T14", "rate limiter during a slot migration", "100 allowed, 0 denied, 5 windows with an end, 100 ok",
			fmt.Sprintf("%d allowed, %d denied, %d windows with an end, %d ok", allowed, denied, expiring, o.sum.OK),
			allowed == requests && denied == 0 && expiring == keys && o.sum.OK == requests)
	})
}

// A slot that moves between the two commands moves the second one only: the request is counted once.
func TestTruthRedirectedBetweenRoundTrips(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, w *redirecting) {
		const keys, requests = 5, 100
		w.nodes[0].Answer("PEXPIRE", "-MOVED 5 "+w.nodes[1].Address())
		p := bare()
		p.Workload.Commands, p.Workload.RateLimiter = nil, &plan.RateLimiter{Limit: requests, Window: time.Hour}
		p.Workload.Keyspace.Keys, p.Shape = keys, plan.Shape{Users: 2, Requests: requests}
		o := w.during(t, p, 0, func() {})
		allowed := uint64(0)
		for _, iv := range o.intervals {
			allowed += iv.Tallies[plan.TallyAllowed] + iv.Tallies[plan.TallyDenied]
		}
		incremented := w.nodes[0].Calls("INCR") + w.nodes[1].Calls("INCR")
		truth.Report(t, "T14", "rate limiter, MOVED at the second round trip", "100 INCR, 100 counted, 100 ok",
			fmt.Sprintf("%d INCR, %d counted, %d ok", incremented, allowed, o.sum.OK),
			incremented == requests && allowed == requests && o.sum.OK == requests)
	})
}

// Each request follows the redirection of its own reply: with a delay between reply and outcome, others arrive in
// between.
func TestTruthEachRequestFollowsItsOwnRedirection(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, w *redirecting) {
		w.nodes[0].Answer("SET", "-MOVED 100 "+w.nodes[1].Address())
		w.nodes[0].Answer("GET", "-MOVED 6000 "+w.nodes[2].Address())
		p := bare()
		p.Client.AddedLatency = 10 * time.Millisecond
		p.Shape = plan.Shape{Users: 10, Requests: 200}
		o := w.during(t, p, 0, func() {})
		wrong := w.nodes[1].Calls("GET") + w.nodes[2].Calls("SET")
		if answered := w.nodes[0].Calls("GET") + w.nodes[0].Calls("SET"); o.sum.Redirected == 0 ||
			o.sum.Redirected != uint64(answered) {
			t.Errorf("%d redirections are counted, the node answered MOVED %d times", o.sum.Redirected, answered)
		}
		truth.Report(t, "T15", "MOVED to two servers with addedLatency", "0 of 200 requests at the other's server",
			fmt.Sprintf("%d of %d", wrong, o.sum.OK),
			wrong == 0 && o.sum.OK == 200)
	})
}

// The probe follows its key, as the load does: to the server that took its slot over, and while the slot is being
// moved.
func TestTruthProbeFollowsTheSlotOfItsKey(t *testing.T) {
	for name, during := range map[string]func(w *redirecting, slot uint16){
		"moved": func(w *redirecting, slot uint16) {
			w.nodes[0].Answer("SET", fmt.Sprintf("-MOVED %d %s", slot, w.nodes[1].Address()))
		},
		"moved, and the topology says so": func(w *redirecting, slot uint16) {
			w.nodes[0].Answer("SET", fmt.Sprintf("-MOVED %d %s", slot, w.nodes[1].Address()))
			w.slots.assign(topology.SlotRange{First: slot, Last: slot, Shard: 1})
		},
		"being moved": func(w *redirecting, slot uint16) {
			w.nodes[0].Answer("SET", fmt.Sprintf("-ASK %d %s", slot, w.nodes[1].Address()))
			w.nodes[1].SetImporting(slot, w.nodes[0].Address())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 2, func(t *testing.T, w *redirecting) {
				p := testPlan(virtualAddress)
				p.Info, p.Workload.Commands = 0, p.Workload.Commands[1:]
				p.Shape = plan.Shape{Rate: 1000, Duration: 3 * time.Second}
				o := w.during(t, p, time.Second, func() {
					tag, _ := route.ShardTag(w.slots.Map(), 0)
					during(w, topology.SlotOf([]byte(tag)))
				})
				truth.Report(t, "T22", "the slot of the probe is "+name, "300 of 300 ok, no gap, no error of the load",
					fmt.Sprintf("%d of %d ok, %d gaps, %d errors", o.probe.OK, o.probe.Due, len(o.probeGaps), o.sum.Due-o.sum.OK),
					o.probe.OK == 300 && o.probe.Due == 300 && len(o.probeGaps) == 0 && o.sum.Due == o.sum.OK)
			})
		})
	}
}

// Redirections that name no server of the cluster, as an answer that cannot be read does, make no shard: the topology
// is looked at again, and the request has failed by MOVED. Those that lead to one are followed.
func TestRandomRedirectionsMakeNoShard(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, w *redirecting) {
				random, lost := rand.New(rand.NewPCG(seed, 37)), uint64(0)
				w.nodes[0].Script("SET", func(string, []string) any {
					slot := random.IntN(topology.SlotCount)
					switch random.IntN(4) {
					case 0:
						return memredis.Raw(fmt.Sprintf("-MOVED %d %s", slot, w.nodes[1+random.IntN(2)].Address()))
					case 1:
						lost++
						return memredis.Raw(fmt.Sprintf("-MOVED %d ::%x:%d", slot, random.IntN(1<<16), random.IntN(1<<16)))
					case 2:
						lost++
						to := []string{"", "x", "?:0", "a:b:c", ":70000"}[random.IntN(5)]
						kind := []string{"MOVED", "ASK"}[random.IntN(2)]
						return memredis.Raw(fmt.Sprintf("-%s %d %s", kind, random.IntN(1<<20), to))
					}
					return nil
				})
				p := bare()
				p.Workload.Commands = p.Workload.Commands[:1]
				p.Shape = plan.Shape{Users: 10, Requests: 2000}
				o := w.during(t, p, 0, func() {})
				if n := len(w.slots.Map().Shards); n != 3 {
					t.Errorf("there are %d shards at the end, of 3", n)
				}
				if moved := o.sum.Errors[record.ClassMoved]; moved != lost || o.sum.Fail != lost || lost == 0 {
					t.Errorf("%d failed by MOVED, %d in all, of %d redirections to nowhere", moved, o.sum.Fail, lost)
				}
				if looks := uint64(w.slots.looks.Load()); looks < lost {
					t.Errorf("%d looks at the topology for %d redirections to nowhere", looks, lost)
				}
			})
		})
	}
}
