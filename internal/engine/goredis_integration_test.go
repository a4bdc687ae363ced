//go:build integration

package engine

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func goRedisOnACluster(t *testing.T, c *redistest.Cluster) {
	goRedisRuns(t, followPlan(plan.TopologyCluster, c.Addresses(), 1000, time.Second))
}

func TestGoRedisDriver(t *testing.T) {
	t.Parallel()
	goRedisRuns(t, followPlan(plan.TopologyStandalone, []string{redistest.NewServer(t, redistest.Options{}).Address()},
		1000, time.Second))
}

func goRedisRuns(t *testing.T, p *plan.Plan) {
	p.Client.Driver = plan.GoRedisDriver
	p.Workload.Keyspace.Prefill = false
	o := runPlan(t, p)
	if o.sum.OK != 1000 || o.sum.Due != 1000 || o.sum.BytesOut == 0 {
		t.Errorf("%s", describe(o))
	}
	addsUp(t, o)
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
		p := realPlan(server.Address())
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
			p.Workload.Ranking = &plan.Ranking{
				Members:     2000,
				ScoreSpread: 100,
				FindCount:   20,
				Weights:     plan.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
			}
		},
		"rateLimiter": func(p *plan.Plan) { p.Workload.RateLimiter = &plan.RateLimiter{Limit: 5, Window: time.Second} },
	} {
		for _, shape := range []plan.Shape{{Users: 8, Requests: 500}, {Rate: 1000, Requests: 500}} {
			for _, pipeline := range []int{1, 4} {
				p := realPlan(server.Address())
				p.Workload.Commands, p.Shape, p.Client.Pipeline, p.Client.Connections = nil, shape, pipeline, 8
				change(p)
				o := runPlan(t, p)
				if o.sum.OK != 500 || o.sum.Fail+o.sum.Unknown+o.sum.Dropped > 0 {
					t.Errorf("%s, pipeline %d: %s", name, pipeline, describe(o))
				}
				addsUp(t, o)
			}
		}
	}
}

// TestGoRedisFindsSentinelsAtTheAddresses: Auto detects that the addresses are those of sentinels.
func TestGoRedisFindsSentinelsAtTheAddresses(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 1, redistest.SentinelOptions{})
	p := followPlan(plan.TopologyAuto, s.SentinelAddresses(), 500, time.Second)
	p.Client.Driver = plan.GoRedisDriver
	p.Workload.Keyspace.Prefill = false
	if o := runPlan(t, p); o.sum.OK != 500 || o.sum.Due != 500 {
		t.Errorf("%s", describe(o))
	}
}

// TestReadsGoToReplicas: under load, in a cluster (TestHealthyCluster) and under sentinels; writes go to the primaries.
func TestReadsGoToReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	readsGoTo(t, sentinelPlan(s, 2000, time.Second), s.Replicas)
}

func readsGoToReplicasOfACluster(t *testing.T, c *redistest.Cluster) {
	readsGoTo(t, followPlan(plan.TopologyCluster, c.Addresses(), 2000,
		time.Second), []*redistest.Server{c.Shards[0][1], c.Shards[1][1], c.Shards[2][1]})
}

func readsGoTo(t *testing.T, p *plan.Plan, replicas []*redistest.Server) {
	p.Client.ReadFrom = plan.ReadReplica
	p.Workload.Keyspace.Prefill = false
	before := make([]int, len(replicas))
	gets := func(s *redistest.Server) int {
		hits, errHits := strconv.Atoi(s.Info("keyspace_hits"))
		misses, errMisses := strconv.Atoi(s.Info("keyspace_misses"))
		if err := errors.Join(errHits, errMisses); err != nil {
			t.Fatal(err)
		}
		return hits + misses
	}
	for i, r := range replicas {
		before[i] = gets(r)
	}
	if o := runPlan(t, p); o.sum.OK != 2000 {
		t.Errorf("%s", describe(o))
	}
	for i, r := range replicas {
		if n := gets(r) - before[i]; n < 100 {
			t.Errorf("replica %d served %d GET of about 1000", i, n)
		}
	}
}
