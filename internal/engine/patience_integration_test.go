//go:build integration

package engine

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// forming is a real deployment that does not serve yet.
type forming struct {
	plan   *plan.Plan
	words  string // of what is waited for
	finish func() // lets it serve
}

// TestPrepareWaitsForDeployments: a deployment that is being formed, or elects a primary, is waited for, and found as
// it is then.
func TestPrepareWaitsForDeployments(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) forming{
		"a server that starts": func(t *testing.T) forming {
			server := redistest.Start(t)
			server.Kill()
			return forming{realPlan(server.Address()), "connection refused", server.Restart}
		},
		"a cluster whose slots belong to nobody": func(t *testing.T) forming {
			server := redistest.StartNode(t)
			return forming{
				followPlan(plan.TopologyAuto, []string{server.Address()}, 100, time.Second),
				"no slot belongs to a node",
				func() { server.Do("cluster", "addslotsrange", 0, 16383) },
			}
		},
		"a cluster whose nodes have not met": func(t *testing.T) forming {
			a, b := redistest.StartNode(t), redistest.StartNode(t)
			a.Do("cluster", "addslotsrange", 0, 8191)
			b.Do("cluster", "addslotsrange", 8192, 16383)
			b.Do("cluster", "set-config-epoch", 2)
			return forming{
				followPlan(plan.TopologyAuto, []string{a.Address()}, 100, time.Second),
				"8192 of 16384 slots belong to no node",
				func() { redistest.Meet(a, b) },
			}
		},
		"a replication that is not set up": func(t *testing.T) forming {
			a, b := redistest.Start(t), redistest.Start(t)
			host, port, _ := strings.Cut(a.Address(), ":")
			return forming{
				followPlan(plan.TopologyAuto, []string{a.Address(), b.Address()}, 100, time.Second),
				"are primaries without a replica",
				func() { b.Do("replicaof", host, port) },
			}
		},
		"a replica whose primary is away": func(t *testing.T) forming {
			server := redistest.Start(t)
			server.Do("config", "set", "replica-serve-stale-data", "no")
			server.Do("replicaof", "127.0.0.1", "1")
			return forming{realPlan(server.Address()), "MASTERDOWN", func() { server.Do("replicaof", "no", "one") }}
		},
		"sentinels without a primary": func(t *testing.T) forming {
			d := redistest.NewSentinel(t, 1, redistest.SentinelOptions{Sentinels: 3})
			p := sentinelPlan(d, 100, time.Second)
			primary := d.CurrentPrimary()
			primary.Kill() // its replica takes over by itself
			return forming{p, primary.Address(), func() {}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := begin(t)
			r, err := New(f.plan, 0, WithPatience(math.MaxInt64))
			if err != nil {
				t.Fatal(err)
			}
			prepared := make(chan error, 1)
			go func() { prepared <- r.Prepare(t.Context(), nil) }()
			await.Until(t, "the load says what it waits for", func() error {
				w := r.Waiting()
				return await.That(w != nil && w.Reason == plan.TargetUnreachable && strings.Contains(w.Message, f.words),
					"it waits for %v, want %q", w, f.words)
			})
			f.finish()
			if err := await.Chan(t, "the load is prepared", prepared); err != nil {
				t.Fatal(err)
			}
			ok := uint64(0)
			if err := r.Run(t.Context(), time.Now(), func(iv *record.Interval) { ok += iv.Probe.OK }); err != nil || ok == 0 {
				t.Errorf("%d successes, %v", ok, err)
			}
		})
	}
}

// TestSentinelsThatDoNotPass: what waiting does not change fails at once at sentinels, too.
func TestSentinelsThatDoNotPass(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	authority := redistest.NewAuthority(t)
	secured := redistest.NewServer(t, redistest.Options{TLS: authority})
	locked := redistest.NewSentinel(t, 0, redistest.SentinelOptions{
		Sentinels:        1,
		SentinelPassword: "guard",
	}).SentinelAddresses()
	for name, tt := range map[string]struct {
		sentinel plan.Sentinel
		reason   plan.Reason
	}{
		"a web server": {plan.Sentinel{Addresses: []string{web.Listener.Addr().String()}}, plan.NotRedis},
		"no sentinel":  {plan.Sentinel{Addresses: []string{redistest.Start(t).Address()}}, plan.CommandInvalid},
		"no password file": {
			plan.Sentinel{Addresses: locked, PasswordFile: t.TempDir() + "/none"},
			plan.AuthenticationFailed,
		},
		"a password is missing": {plan.Sentinel{Addresses: locked}, plan.AuthenticationFailed},
		"TLS":                   {plan.Sentinel{Addresses: []string{secured.Address()}}, plan.TLSFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := followPlan(plan.TopologySentinel, nil, 100, time.Second)
			p.Client.DialTimeout = 5 * time.Second // the port's protocol is tried after three
			tt.sentinel.MasterName = redistest.MasterName
			p.Target.Sentinel = &tt.sentinel
			wantReason(t, p, tt.reason, "", WithPatience(math.MaxInt64))
		})
	}
}

// TestClusterWithSlotsOfNobody: with cluster-require-full-coverage no, what is served is loaded, and the rest fails.
func TestClusterWithSlotsOfNobody(t *testing.T) {
	t.Parallel()
	var nodes []*redistest.Server
	for range 2 {
		nodes = append(nodes, redistest.StartNode(t, "cluster-require-full-coverage no"))
	}
	a, b := nodes[0], nodes[1]
	a.Do("cluster", "addslotsrange", 0, 8191)
	b.Do("cluster", "addslotsrange", 8192, 12287)
	b.Do("cluster", "set-config-epoch", 2)
	redistest.Meet(a, b)
	p := followPlan(plan.TopologyAuto, []string{a.Address()}, 200, time.Second)
	r, err := New(p, 0, WithPatience(await.Limit))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var ok, failed uint64
	err = r.Run(t.Context(), time.Now(), func(iv *record.Interval) {
		for _, op := range iv.Ops {
			ok, failed = ok+op.OK, failed+notDone(&op.Counts)
		}
	})
	if err != nil || ok == 0 || failed == 0 || ok < failed {
		t.Errorf("%d of %d requests succeeded, %v; want 3 of 4", ok, ok+failed, err)
	}
}
