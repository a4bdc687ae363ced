//go:build integration

package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestGoRedisDriver(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	single := redistest.NewServer(t, redistest.Options{})
	for _, p := range []*plan.Plan{
		followPlan(plan.TopologyCluster, c.Addresses(), 1000, 2*time.Second),
		followPlan(plan.TopologyStandalone, []string{single.Address()}, 1000, 2*time.Second),
	} {
		p.Client.Driver = plan.GoRedisDriver
		p.Workload.Keyspace.Prefill = false
		o := runPlan(t, p)
		if o.sum.OK < 1990 || o.sum.Due != 2000 || o.sum.BytesOut == 0 {
			t.Errorf("%s: %s", p.Target.Topology, describe(o))
		}
		addsUp(t, o)
	}
}

func TestGoRedisUsersThinkAndErr(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{})
	server.Do("set", "t:0", "text")
	p := testPlan(server.Address())
	p.Client.Driver, p.Client.Connections = plan.GoRedisDriver, 20
	p.Shape = plan.Shape{Users: 20, ThinkTime: 50 * time.Millisecond, Duration: time.Second}
	p.Workload.Commands = []plan.Command{{Name: "incr", Weight: 1, Words: []string{"INCR", "t:0"}}, {Name: "get", Weight: 1, Words: []string{"GET", "nothing"}}}
	o := runPlan(t, p)
	if o.sum.OK == 0 || o.sum.Fail == 0 || o.sum.Unknown > 0 || o.sum.OK+o.sum.Fail != o.sum.Sent || o.sum.Sent < 200 || o.sum.Sent > 420 {
		t.Errorf("%s", describe(o))
	}
}

// TestGoRedisIsBackLater: with go-redis's defaults the outage of a killed shard is longer than the server's own, which the probe sees.
func TestGoRedisIsBackLater(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 600, 16*time.Second)
	p.Client.Driver = plan.GoRedisDriver
	p.Workload.Keyspace.Prefill = false
	o, r := duringRun(t, p, 2*time.Second, c.Shards[0][0].Kill)
	defer r.forgetDeployment()
	var failed uint64
	for _, iv := range o.intervals[110:] {
		for i := range iv.Ops {
			failed += iv.Ops[i].Fail + iv.Ops[i].Unknown + iv.Ops[i].Dropped
		}
	}
	// A replica is promoted after about 4 s, and the probe sees it at once; go-redis reads the layout anew after 60 s, and until then fails
	// a third of the requests.
	server := longestGap(o.probeGaps)
	if server < 1500*time.Millisecond || server > 9*time.Second {
		t.Errorf("the server's outage is %s", server)
	}
	if failed < 100 {
		t.Errorf("%d requests failed more than 9 s after the kill", failed)
	}
	// The load as a whole hardly has a gap; its shard has one that lasts to the end, 14 s after the kill.
	shard, all := longestGap(shardGaps(o, 0)), longestGap(o.gaps)
	if shard < server+4*time.Second || shard < 13*time.Second || all > 3*time.Second {
		t.Errorf("the shard's outage is %s for go-redis and %s for the server, that of the load as a whole %s", shard, server, all)
	}
	t.Logf("%d requests failed more than 9 s after the kill; outage %s, of the shard %s, of the server %s", failed, all, shard, server)
}

func TestHTTPWorkload(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/items" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}))
	defer api.Close()
	server := redistest.NewServer(t, redistest.Options{})
	for path, wantOK := range map[string]bool{"/items": true, "/nothing": false} {
		p := testPlan(server.Address())
		p.Workload.Commands = nil
		p.Workload.HTTP = &plan.HTTP{URL: api.URL + path, Method: http.MethodGet}
		p.Shape = plan.Shape{Rate: 300, Duration: time.Second}
		o := runPlan(t, p)
		if wantOK && o.sum.OK != 300 || !wantOK && (o.sum.Fail != 300 || o.sum.OK != 0) {
			t.Errorf("%s: %s", path, describe(o))
		}
		addsUp(t, o)
		var tallies uint64
		for _, iv := range o.intervals {
			for _, n := range iv.Tallies {
				tallies += n
			}
		}
		if tallies == 0 {
			t.Errorf("%s: nothing is tallied", path)
		}
	}
}

// TestRankingAndRateLimiter: operations of several round trips, in both loops, one and several in flight.
func TestRankingAndRateLimiter(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	for name, change := range map[string]func(*plan.Plan){
		"ranking": func(p *plan.Plan) {
			p.Workload.Ranking = &plan.Ranking{Members: 2000, ScoreSpread: 100, FindCount: 20, Weights: plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1}}
		},
		"rateLimiter": func(p *plan.Plan) { p.Workload.RateLimiter = &plan.RateLimiter{Limit: 5, Window: time.Second} },
	} {
		for _, shape := range []plan.Shape{{Users: 8, Requests: 4000}, {Rate: 1000, Duration: 2 * time.Second}} {
			for _, pipeline := range []int{1, 4} {
				p := testPlan(server.Address())
				p.Workload.Commands, p.Shape, p.Client.Pipeline, p.Client.Connections = nil, shape, pipeline, 8
				change(p)
				o := runPlan(t, p)
				if o.sum.OK < 1990 || o.sum.Fail+o.sum.Unknown+o.sum.Dropped > 0 {
					t.Errorf("%s, pipeline %d: %s", name, pipeline, describe(o))
				}
				addsUp(t, o)
			}
		}
	}
}

// TestClientMannerisms: connections of a maximum age, shared connections, a slower network, and retries.
func TestClientMannerisms(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{})
	t.Run("maximum age", func(t *testing.T) {
		p := testPlan(server.Address())
		p.Client.MaxAge = 200 * time.Millisecond
		p.Probe, p.Info = plan.Probe{}, 0
		received := func() int {
			n, err := strconv.Atoi(server.Info("total_connections_received"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := received()
		o := runPlan(t, p)
		if o.sum.OK != o.sum.Sent || o.sum.OK < 1000 {
			t.Errorf("%s", describe(o))
		}
		// Each lives 180 to 200 ms of the run's second, so it is made anew four or five times.
		if made, conns := received()-before, p.Client.Connections; made < 3*conns || made > 8*conns {
			t.Errorf("%d connections were made for %d that live 200 ms of a second", made, conns)
		}
	})
	t.Run("multiplexed", func(t *testing.T) {
		p := testPlan(server.Address())
		p.Client.Mode, p.Client.Connections = plan.Multiplexed, 1
		p.Shape.Users = 50
		o := runPlan(t, p)
		if o.sum.OK != o.sum.Sent || o.sum.OK < 5000 || o.intervals[5].Connections != 1 {
			t.Errorf("%d connections; %s", o.intervals[5].Connections, describe(o))
		}
	})
	t.Run("added latency", func(t *testing.T) {
		for _, mode := range []plan.Mode{plan.Dedicated, plan.Multiplexed} {
			p := testPlan(server.Address())
			p.Client.AddedLatency, p.Client.Mode = 20*time.Millisecond, mode
			o := runPlan(t, p)
			if p50 := o.sum.Latency.Quantile(0.5); p50 < 20*time.Millisecond || p50 > 30*time.Millisecond+o.late || o.sum.OK < 250 || o.sum.OK > 510 {
				t.Errorf("%s: p50 %s; %s", mode, p50, describe(o))
			}
		}
	})
	t.Run("retries", func(t *testing.T) {
		p := testPlan(server.Address())
		p.Client.Retries = 100
		p.Probe = plan.Probe{}
		p.Shape = plan.Shape{Rate: 500, Duration: 2 * time.Second}
		o, r := duringRun(t, p, 500*time.Millisecond, func() { server.Kill(); time.Sleep(200 * time.Millisecond); server.Restart() })
		defer r.forgetDeployment()
		if o.sum.Fail > 0 || o.sum.OK < 950 {
			t.Errorf("%s", describe(o))
		}
		addsUp(t, o)
	})
}

// TestGoRedisFindsSentinelsAtTheAddresses: Auto takes addresses of sentinels for what they are.
func TestGoRedisFindsSentinelsAtTheAddresses(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 1, redistest.SentinelOptions{})
	p := followPlan(plan.TopologyAuto, s.SentinelAddresses(), 500, time.Second)
	p.Client.Driver = plan.GoRedisDriver
	p.Workload.Keyspace.Prefill = false
	if o := runPlan(t, p); o.sum.OK < 490 || o.sum.Due != 500 {
		t.Errorf("%s", describe(o))
	}
	p.Client.ReadFrom = plan.ReadReplica
	if _, err := New(p, 0); err != nil {
		t.Fatal(err)
	}
	r, err := New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.forgetDeployment()
	if err := r.Prepare(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), "client.readFrom: with driver GoRedis a cluster only") {
		t.Errorf("%v", err)
	}
}

// TestReadsGoToReplicas: under load, in a cluster and under sentinels; writes go to the primaries.
func TestReadsGoToReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	for name, tc := range map[string]struct {
		plan     *plan.Plan
		replicas []*redistest.Server
	}{
		"cluster":   {followPlan(plan.TopologyCluster, c.Addresses(), 2000, 2*time.Second), []*redistest.Server{c.Shards[0][1], c.Shards[1][1], c.Shards[2][1]}},
		"sentinels": {sentinelPlan(s, 2000, 2*time.Second), s.Replicas},
	} {
		tc.plan.Client.ReadFrom = plan.ReadReplica
		tc.plan.Workload.Keyspace.Prefill = false
		before := make([]int, len(tc.replicas))
		gets := func(s *redistest.Server) int {
			hits, errHits := strconv.Atoi(s.Info("keyspace_hits"))
			misses, errMisses := strconv.Atoi(s.Info("keyspace_misses"))
			if err := errors.Join(errHits, errMisses); err != nil {
				t.Fatal(err)
			}
			return hits + misses
		}
		for i, r := range tc.replicas {
			before[i] = gets(r)
		}
		o := runPlan(t, tc.plan)
		if o.sum.OK < 3990 {
			t.Errorf("%s: %s", name, describe(o))
		}
		for i, r := range tc.replicas {
			if n := gets(r) - before[i]; n < 400 {
				t.Errorf("%s: replica %d served %d GET of about 2000", name, i, n)
			}
		}
	}
}
