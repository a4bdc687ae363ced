package engine

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// TestGoRedisUsersThinkAndErr: each user has a turn every 50 ms; an error reply is a failure, a null is none.
func TestGoRedisUsersThinkAndErr(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		w.server.Answer("INCR", "-ERR value is not an integer or out of range")
		p := bare()
		p.Client.Driver, p.Client.Connections = plan.GoRedisDriver, 20
		p.Shape = plan.Shape{Users: 20, ThinkTime: 50 * time.Millisecond, Duration: time.Second}
		p.Workload.Commands = []plan.Command{
			{Name: "incr", Weight: 1, Words: []string{"INCR", "t:0"}},
			{Name: "get", Weight: 1, Words: []string{"GET", "nothing"}},
		}
		o := runPlan(t, p, w.dialled())
		tried := uint64(1) // each command, before the start
		incr, get := uint64(w.server.Calls("INCR"))-tried, uint64(w.server.Calls("GET"))-tried
		if o.sum.Sent != 400 || o.sum.OK != get || o.sum.Fail != incr || incr == 0 || get == 0 {
			t.Errorf("%d INCR, %d GET: %s", incr, get, describe(o))
		}
	})
}

// memCluster is a cluster of three shards in memory, which accept keys of any slot.
type memCluster struct {
	servers []*memredis.Server
	replica *memredis.Server // of the first shard
}

func newMemCluster(t *testing.T, w *world) *memCluster {
	c := &memCluster{servers: []*memredis.Server{w.server}}
	for i := range 3 {
		c.servers = append(c.servers, memredis.Start(t, w.network, fmt.Sprintf("10.0.0.%d:6379", 2+i), memredis.Options{}))
	}
	c.replica, c.servers = c.servers[3], c.servers[:3]
	c.publish()
	return c
}

// commandsOfGoRedis is COMMAND's reply, as far as go-redis needs it: name, arity, flags, first and last key, step.
const commandsOfGoRedis = "*2\r\n*6\r\n$3\r\nget\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n*6\r\n$3\r\nset\r\n" +
	":-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1"

// ranges are the slots of the shards.
var ranges = []topology.SlotRange{
	{First: 0, Last: 5460, Shard: 0},
	{First: 5461, Last: 10922, Shard: 1},
	{First: 10923, Last: 16383, Shard: 2},
}

// publish sets the layout that every server reports.
func (c *memCluster) publish() {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d", len(ranges))
	for i, s := range c.servers {
		host, port, _ := net.SplitHostPort(s.Address())
		id := fmt.Sprintf("%040d", i)
		fmt.Fprintf(&b, "\r\n*3\r\n:%d\r\n:%d\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$%d\r\n%s", ranges[i].First, ranges[i].Last,
			len(host), host, port, len(id), id)
	}
	for _, s := range append(c.servers[:3:3], c.replica) {
		s.Answer("CLUSTER", b.String())
		s.Script("COMMAND", func(_ string, words []string) any {
			if len(words) > 1 {
				return nil
			}
			return memredis.Raw(commandsOfGoRedis)
		})
	}
}

// failOver promotes the replica of the first shard.
func (c *memCluster) failOver() {
	c.servers[0] = c.replica
	c.publish()
}

// route has a load follow the cluster as it is now, and returns where it finds the layout.
func (c *memCluster) route(r *Runner) *fixedMap {
	tracker := &fixedMap{}
	tracker.m.Store(c.layout())
	r.run.Routes.Tracker, r.run.Sharded = tracker, true
	return tracker
}

// layout is the cluster's map, as a tracker returns it.
func (c *memCluster) layout() *topology.Map {
	var shards []topology.Shard
	for _, s := range c.servers {
		shards = append(shards, topology.Shard{Primary: s.Address()})
	}
	return topology.NewMap(topology.KindCluster, 0, shards, ranges...)
}

// TestGoRedisRecoversLater: with go-redis' defaults the outage of a killed shard is longer than the server's, which the
// probe measures: go-redis reloads the layout after a minute.
func TestGoRedisRecoversLater(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		const killed, back, length = 2 * time.Second, 6 * time.Second, 70 * time.Second
		c := newMemCluster(t, w)
		p := testPlan(virtualAddress)
		p.Client.Driver, p.Info = plan.GoRedisDriver, 0
		p.Shape = plan.Shape{Rate: 60, Duration: length}
		r, err := New(p, 0, w.dialled())
		if err != nil {
			t.Fatal(err)
		}
		tracker := c.route(r)
		if err := r.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		start, wait := inBackground(t, t.Context(), r)
		time.Sleep(time.Until(start.Add(killed)))
		w.server.Kill()
		time.Sleep(time.Until(start.Add(back)))
		c.failOver()
		tracker.m.Store(c.layout())
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		// go-redis closes the pool of a removed node after a minute, and keeps dialling until then
		time.Sleep(3 * time.Minute)
		addsUp(t, o)
		wantGap(t, "probe", o.probeGaps, killed-5*time.Millisecond, back+5*time.Millisecond)
		g := longest(shardGaps(o, 0))
		if from, to := time.Duration(g.From),
			time.Duration(g.To); from > killed || to < time.Minute || to > time.Minute+time.Second {
			t.Errorf("the shard's gap is %s to %s, want it until go-redis reads the layout after a minute", from, to)
		}
		// The other two shards are not affected.
		if all := longestGap(o.gaps); all > time.Second {
			t.Errorf("the load as a whole has a gap of %s", all)
		}
	})
}

// fixedMap is a Tracker of a map, which a test sets.
type fixedMap struct{ m atomic.Pointer[topology.Map] }

func (f *fixedMap) Map() *topology.Map           { return f.m.Load() }
func (f *fixedMap) Refresh(string)               {}
func (f *fixedMap) Moved(uint16, string) bool    { return false }
func (f *fixedMap) OnChange(func(*topology.Map)) {}
func (f *fixedMap) Close()                       {}

// TestLedgerOfALibrary: the share of a library's requests that are ledger writes is that of the plan, whoever sends
// them; the server counts each, and they are read back.
func TestLedgerOfALibrary(t *testing.T) {
	for name, shape := range map[string]plan.Shape{
		"rate":  {Rate: 200, Duration: 5 * time.Second},
		"users": {Users: 7, Requests: 1000, ThinkTime: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := bare()
				p.Client.Driver, p.Client.Connections, p.Shape = plan.GoRedisDriver, 20, shape
				p.Verify = &plan.Verify{Share: 0.2}
				o, r := duringRun(t, p, 0, func() {}, w.dialled())
				got, err := r.Verify(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				got.Settings = ""
				if diff := cmp.Diff(&record.Ledger{Acked: 200, ExecutedTwice: new(uint64(0))}, got); diff != "" || o.sum.OK != 1000 {
					t.Errorf("%s\n%s", describe(o), diff)
				}
				if writes := w.server.Calls("BITFIELD"); writes != 201 { // one to extend the key
					t.Errorf("%d writes of the ledger", writes)
				}
			})
		})
	}
}
