//go:build integration

package bottleneck

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The counters of a real Redis are read and become evidence. Which component Find names also depends on this machine;
// TestFindInRecordsOfRealRuns and `make provoke` cover that.
func TestEvidenceOfARealRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		config   []string
		crowd    bool // more clients than the server accepts
		matches  func(*evidence) string
		evidence string
	}{
		{
			"evictions",
			[]string{"maxmemory 5mb", "maxmemory-policy allkeys-lru"},
			false,
			(*evidence).memory,
			"of maxmemory 5.0 MiB, policy allkeys-lru",
		},
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
				return len(e.servers) == 1 && e.servers[0].total.commands >= 200 && strings.Contains(got, c.evidence) &&
					(got == "") == (c.evidence == "")
			}
			s := recordUntil(t, written(server.Address()), beside, func(s *merged.Series) bool {
				return found(gather(Input{Series: s}))
			})
			if e := gather(Input{Series: s}); !found(e) {
				t.Errorf("evidence is %q, want %q in it; servers are %+v", c.matches(e), c.evidence, e.servers)
			}
		})
	}
}

// A user who may not run INFO leaves the reason and the round trips, and one who may not read the slow log a number
// that is unknown.
func TestUserWithoutPermissions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		denied, reason string // "" = there are readings
	}{
		{"info", "INFO: NOPERM"}, {"slowlog", ""},
	} {
		t.Run(c.denied, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, redistest.Options{})
			if err := server.Client().Do(t.Context(), "ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-"+c.denied).
				Err(); err != nil {
				t.Fatal(err)
			}
			p := set(server.Address(), 2, 10*time.Millisecond)
			p.Target.Username, p.Target.PasswordFile = "app", filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(p.Target.PasswordFile, []byte("any"), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Info, p.Shape.WarmUp, p.Shape.Duration = 200*time.Millisecond, 0, 2*time.Second
			s := recordRun(t, p, nil)
			evidence := gather(Of(p, s)).notObserved() // which component is found depends on this machine, too
			if got := NotObserved(p, s); !strings.HasPrefix(got, c.reason) || (got == "") != (c.reason == "") ||
				(evidence == "") != (c.reason == "") || !strings.HasSuffix(evidence, got) {
				t.Errorf("%q, and %q in the evidence; want %q", got, evidence, c.reason)
			}
			trips := 0
			for _, a := range s.Agents() {
				if a.RoundTrip > 0 {
					trips++
				}
			}
			unknown := slices.ContainsFunc(s.Servers(), func(r record.Server) bool { return r.SlowLog.Total == -1 })
			if trips == 0 || (len(s.Servers()) == 0) != (c.reason != "") || unknown != (c.denied == "slowlog") {
				t.Errorf("%d round trips, slow log unknown %v, of %d readings", trips, unknown, len(s.Servers()))
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
	_ = await.Try(ctx, await.Limit, func() error { // ctx ends with the load
		n, _ := strconv.Atoi(server.Info("connected_clients"))
		return await.That(n >= 22, "%d clients are connected", n) // 20 of the load, one of the observer, one of this function
	})
	occupy(server.Address(), 5*time.Millisecond)(ctx)
}
