//go:build integration

package bottleneck

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// What a real Redis counts is read and becomes evidence. Which component Find names depends on this machine's times as well; TestFindInRecordsOfRealRuns
// has that, and `make provoke`.
func TestEvidenceOfARealRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		config   []string
		plan     func(address string) *load.Plan
		crowd    bool // more clients than the server takes
		matches  func(*evidence) string
		evidence string
	}{
		{"evictions", []string{"maxmemory 5mb", "maxmemory-policy allkeys-lru"}, written, false, (*evidence).memory, "of maxmemory 5.0 MiB, policy allkeys-lru"},
		{"writes refused", []string{"maxmemory 5mb"}, written, false, (*evidence).memory, "for want of memory"},
		{"connections rejected", []string{"maxclients 30"}, written, true, (*evidence).clients, "maxclients is 30"},
		{"enough of all", nil, written, false, func(e *evidence) string { return e.memory() + e.clients() }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, redistest.Options{Config: c.config})
			var beside func(context.Context)
			if c.crowd {
				beside = func(ctx context.Context) { crowd(ctx, server) }
			}
			e := gather(Input{Series: record(t, c.plan(server.Address()), beside)})
			if len(e.servers) != 1 || e.servers[0].commands == 0 {
				t.Fatalf("servers are %+v", e.servers)
			}
			if got := c.matches(e); !strings.Contains(got, c.evidence) || (got == "") != (c.evidence == "") {
				t.Errorf("evidence is %q, want %q in it", got, c.evidence)
			}
		})
	}
}

// written fills 5 MiB with some hundred requests, and is read five times a second.
func written(address string) *load.Plan {
	p := large(address, 50_000)
	p.Info, p.Shape.WarmUp, p.Shape.Duration = 200*time.Millisecond, 0, 2*time.Second
	return p
}

// crowd takes all connections that a server has left once the load and its observer have theirs.
func crowd(ctx context.Context, server *redistest.Server) {
	for n := 0; n < 22 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) { // the load's 20, the observer's, the one that asks here
		n, _ = strconv.Atoi(server.Info("connected_clients"))
	}
	occupy(server.Address(), 5*time.Millisecond)(ctx)
}
