//go:build integration

package bottleneck

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The counters of a real Redis are read and become evidence. Which component Find names also depends on this machine; TestFindInRecordsOfRealRuns
// and `make provoke` cover that.
func TestEvidenceOfARealRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		config   []string
		crowd    bool // more clients than the server accepts
		matches  func(*evidence) string
		evidence string
	}{
		{"evictions", []string{"maxmemory 5mb", "maxmemory-policy allkeys-lru"}, false, (*evidence).memory, "of maxmemory 5.0 MiB, policy allkeys-lru"},
		{"writes refused", []string{"maxmemory 5mb"}, false, (*evidence).memory, "commands with OOM"},
		{"connections rejected", []string{"maxclients 30"}, true, (*evidence).clients, "maxclients is 30"},
		{"enough of all", nil, false, func(e *evidence) string { return e.memory() + e.clients() }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, redistest.Options{Config: c.config})
			var beside func(context.Context)
			if c.crowd {
				beside = func(ctx context.Context) { crowd(ctx, server) }
			}
			found := func(e *evidence) bool { // 200 commands write 10 MiB
				got := c.matches(e)
				return len(e.servers) == 1 && e.servers[0].total.commands >= 200 && strings.Contains(got, c.evidence) && (got == "") == (c.evidence == "")
			}
			s := recordUntil(t, written(server.Address()), beside, func(s *record.Series) bool { return found(gather(Input{Series: s})) })
			if e := gather(Input{Series: s}); !found(e) {
				t.Errorf("evidence is %q, want %q in it; servers are %+v", c.matches(e), c.evidence, e.servers)
			}
		})
	}
}

// written fills 5 MiB with some hundred requests, and is polled five times a second, until the result is as expected.
func written(address string) *plan.Plan {
	p := large(address, 50_000)
	p.Info, p.Shape.WarmUp, p.Shape.Duration = 200*time.Millisecond, 0, 20*time.Second
	return p
}

// crowd opens all remaining connections of a server after the load and its observer have connected.
func crowd(ctx context.Context, server *redistest.Server) {
	for n := 0; n < 22 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) { // 20 of the load, one of the observer, one of this function
		n, _ = strconv.Atoi(server.Info("connected_clients"))
	}
	occupy(server.Address(), 5*time.Millisecond)(ctx)
}
