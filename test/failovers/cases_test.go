//go:build integration

package failovers

import (
	"context"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// deployment is what a case has started.
type deployment struct {
	watched     *redistest.Server // a primary that the load must reach
	reach       []string          // the flags that lead to it
	fail        func()            // the failover; returns when it has begun
	restore     func()            // nil = nothing to do
	restoreWait time.Duration     // from fail's return to restore
}

// earlier is what another measurement found.
type earlier struct {
	acked, lost, errors int
	gap                 string // "" = not reported
	words               string // "" = the figures above
}

// failover is one row of the table.
type failover struct {
	name   string
	start  func(*testing.T) deployment
	before earlier
	share  string        // of the requests that are ledger writes; "" = there is no ledger
	flags  []string      // beside the common ones
	length time.Duration // of the load; 0 = usual
}

const downAfter = 2 * time.Second

var cases = []failover{
	{
		name:   "`SENTINEL FAILOVER`, healthy primary",
		start:  sentinelFailover,
		before: earlier{acked: 157_772, lost: 20_985, errors: 0, gap: "54 ms"},
		share:  "100%",
	}, {
		name:   "the same, a quarter of the requests in the ledger",
		start:  sentinelFailover,
		before: earlier{acked: 157_772, lost: 20_985, errors: 0, gap: "54 ms"},
		share:  "25%",
	}, {
		name: "`CLIENT PAUSE 20000 WRITE`, then `SENTINEL FAILOVER`",
		start: func(t *testing.T) deployment {
			s := newSentinel(t, 60*time.Second)
			d := underSentinels(s)
			d.fail = func() {
				s.Primary.Do("client", "pause", 20000, "write")
				s.Failover()
			}
			return d
		},
		before: earlier{acked: 240_476, lost: 0, errors: 16, gap: "2.2 s"},
		share:  "100%",
	}, {
		name: "kill -9 of the primary, Sentinel, down-after 2 s",
		start: func(t *testing.T) deployment {
			s := newSentinel(t, downAfter)
			d := underSentinels(s)
			d.fail, d.restore, d.restoreWait = s.Primary.Kill, s.Primary.Restart, 9*time.Second // long after the failover
			return d
		},
		before: earlier{acked: 122_716, lost: 1, errors: 51_872, gap: "4.0 s"},
		share:  "100%",
	}, {
		name:  "kill -9, no persistence, back after 1 s (down-after 5 s)",
		start: func(t *testing.T) deployment { return killedAndBack(t) },
		before: earlier{
			acked: 40_113,
			lost:  40_113,
			gap:   "2.0 s",
			words: "all 40,113 before the kill lost, replicas emptied too, no failover, 2.0 s",
		},
		share: "100%",
	}, {
		name:   "the same with `appendonly yes`",
		start:  func(t *testing.T) deployment { return killedAndBack(t, "appendonly yes") },
		before: earlier{words: "0 lost, with any `appendfsync`"},
		share:  "100%",
	}, {
		name: "SIGSTOP of the primary for 6 s, Sentinel, down-after 2 s",
		start: func(t *testing.T) deployment {
			s := newSentinel(t, downAfter)
			d := underSentinels(s)
			d.fail, d.restore, d.restoreWait = s.Primary.Stop, s.Primary.Cont, 6*time.Second
			return d
		},
		before: earlier{acked: 160_674, lost: 0, errors: 80, gap: "4.2 s"},
		share:  "100%",
	}, {
		name: "`FAILOVER TO`, plain replication",
		start: func(t *testing.T) deployment {
			r := redistest.NewReplication(t, 2, redistest.Options{})
			d := deployment{watched: r.Primary, reach: repeated("--address", r.Addresses())}
			d.reach = append(d.reach, "--topology", "Replication")
			d.fail = func() { r.FailoverTo(r.Primary, r.Replicas[0]) }
			return d
		},
		before: earlier{words: "0 lost, writes paused for 54-64 ms in three runs, over 0.4 s in one"},
		share:  "100%",
	}, {
		name:   "`CLUSTER FAILOVER`",
		start:  func(t *testing.T) deployment { return clusterFailover(t) },
		before: earlier{words: "0 lost, 0 errors, 45-51 ms"},
		share:  "100%",
	}, {
		name:   "`CLUSTER FAILOVER FORCE`",
		start:  func(t *testing.T) deployment { return clusterFailover(t, "force") },
		before: earlier{lost: 162, words: "162 and 238 lost in two runs, 0 errors, within 34-40 ms"},
		share:  "100%",
	}, {
		name:   "`CLUSTER FAILOVER TAKEOVER`",
		start:  func(t *testing.T) deployment { return clusterFailover(t, "takeover") },
		before: earlier{lost: 9, words: "9 lost, 0 errors"},
		share:  "100%",
	}, {
		name:   "Cluster, kill -9 of a primary, node-timeout 2 s",
		start:  clusterKill,
		before: earlier{words: "0 lost; the shard is back after 4.1 s"},
		share:  "100%",
	}, {
		name:   "the same, `--driver GoRedis --driver-option ClusterStateReloadInterval=1s`",
		start:  clusterLoss,
		before: earlier{words: "0 lost; the shard is back after 4.1 s (go-redis with a reload every 1 s)"},
		flags:  []string{"--driver", "GoRedis", "--driver-option", "ClusterStateReloadInterval=1s", "--command", oneShard},
	}, {
		name:   "the same, `--driver GoRedis` as it comes",
		start:  clusterLoss,
		before: earlier{words: "not measured"},
		flags:  []string{"--driver", "GoRedis", "--command", oneShard},
		length: 80 * time.Second,
	},
}

// oneShard sends everything to the shard that clusterKill kills: with go-redis there are no figures per shard.
const oneShard = "SET a {value}"

// killedShard serves key "a": slot 15495 of 16384, in three equal parts.
const killedShard = 2

func newSentinel(t *testing.T, down time.Duration, config ...string) *redistest.Sentinel {
	t.Helper()
	return redistest.NewSentinel(t, 2, redistest.SentinelOptions{
		DownAfter:      down,
		DefaultPeriods: true,
		Options:        redistest.Options{Config: config},
	})
}

func underSentinels(s *redistest.Sentinel) deployment {
	return deployment{
		watched: s.Primary,
		reach:   append(repeated("--sentinel", s.SentinelAddresses()), "--master-name", redistest.MasterName),
	}
}

func sentinelFailover(t *testing.T) deployment {
	s := newSentinel(t, 60*time.Second)
	d := underSentinels(s)
	d.fail = s.Failover
	return d
}

// killedAndBack kills a primary that is back before the sentinels detect it.
func killedAndBack(t *testing.T, config ...string) deployment {
	s := newSentinel(t, 5*time.Second, config...)
	d := underSentinels(s)
	d.fail, d.restore, d.restoreWait = s.Primary.Kill, s.Primary.Restart, time.Second
	return d
}

func newCluster(t *testing.T) (*redistest.Cluster, deployment) {
	t.Helper()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{NodeTimeout: 2 * time.Second})
	return c, deployment{
		watched: c.Shards[killedShard][0],
		reach:   append(repeated("--address", c.Addresses()), "--topology", "Cluster"),
	}
}

func clusterFailover(t *testing.T, option ...any) deployment {
	c, d := newCluster(t)
	d.fail = func() {
		words := append([]any{"cluster", "failover"}, option...)
		if err := c.Shards[killedShard][1].Client().Do(context.Background(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// clusterKill loses a primary, and has it back long after its replica took over: the ledger is read at every replica.
func clusterKill(t *testing.T) deployment {
	c, d := newCluster(t)
	killed := c.Shards[killedShard][0]
	d.fail, d.restore, d.restoreWait = killed.Kill, killed.Restart, 9*time.Second
	return d
}

// clusterLoss kills a primary permanently: no server at its address redirects clients.
func clusterLoss(t *testing.T) deployment {
	c, d := newCluster(t)
	d.fail = c.Shards[killedShard][0].Kill
	return d
}

func repeated(flag string, values []string) []string {
	var all []string
	for _, v := range values {
		all = append(all, flag, v)
	}
	return all
}
