//go:build integration

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestCleanUp: what the run can have created is removed, and nothing else: of each workload, on one server and in a
// cluster, by the pods together.
func TestCleanUp(t *testing.T) { redistest.Each(t, testCleanUp) }

func testCleanUp(t *testing.T) {
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	for name, workload := range map[string]plan.Workload{
		"commands": {Commands: []plan.Command{
			{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
			{Name: "push", Weight: 1, Words: []string{"LPUSH", "{key}:list", "{value}"}},
			{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}},
		}},
		"benchmark": {Benchmark: &plan.Benchmark{Tests: []string{"set", "incr", "lpop", "spop", "zadd", "mset", "xadd"}}},
		"ranking": {Ranking: &plan.Ranking{
			Members: 500, ScoreSpread: 9, FindCount: 5,
			Weights: plan.RankingWeights{Set: 1, Find: 1},
		}},
		"limiter": {RateLimiter: &plan.RateLimiter{Limit: 10, Window: time.Hour}},
		"locks": {Lock: &plan.Lock{
			Pods: 2, Locks: 1, TTL: time.Hour, Hold: 30 * time.Millisecond, Renew: 10 * time.Millisecond,
			Retry: time.Millisecond, Fencing: true,
		}},
	} {
		for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver} {
			if driver == plan.GoRedisDriver && name != "commands" {
				continue
			}
			for kind, address := range map[plan.Topology][]string{
				plan.TopologyStandalone: {server.Address()},
				plan.TopologyCluster:    cluster.Addresses(),
			} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, driver, kind), func(t *testing.T) {
					p := followPlan(kind, address, 1000, 200*time.Millisecond)
					p.Pods, p.Client.Driver = 2, driver
					p.Workload = workload
					if workload.Lock != nil {
						p.Shape = plan.Shape{Users: 4, Duration: 200 * time.Millisecond}
					}
					p.Workload.Keyspace = plan.Keyspace{
						Prefix: "rq:", Keys: 300, Distribution: plan.Uniform, Prefill: true, Cleanup: true,
					}
					p.Workload.Values = plan.Values{MinBytes: 1, MaxBytes: 9}
					p.Probe = plan.Probe{Rate: 50, Words: []string{"SET", "rq:probe:{user}", "{seq}", "EX", "60"}}
					keys := func() (n int64) {
						for _, s := range append(cluster.Servers(), server) {
							n += s.Do("DBSIZE").(int64)
						}
						return n
					}
					// of an application
					server.Do("SET", "rq", "1")
					server.Do("SET", "rq:other", "1")
					before := keys()
					var runners []*Runner
					for pod := range p.Pods {
						runners = append(runners, runPod(t, p, pod))
					}
					created := keys() - before
					var removed int64
					for _, r := range runners {
						n, err := r.CleanUp(t.Context(), nil)
						if err != nil {
							t.Error(err)
						}
						removed += n
					}
					if created == 0 || removed != created || keys() != before {
						t.Errorf("%d keys were created, %d removed, and %d are left", created, removed, keys()-before)
					}
				})
			}
		}
	}
}
