//go:build integration

package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A real replica that a real primary cuts off at its output buffer limit with each write begins anew without end, which
// is said with both addresses; not that clients were disconnected, which the primary counts as well.
func TestAReplicaThatSyncsWithoutEnd(t *testing.T) {
	redistest.Each(t, func(t *testing.T) {
		servers := redistest.NewReplication(t, 1, redistest.Options{Config: []string{
			`client-output-buffer-limit replica 2mb 2mb 0`, "repl-backlog-size 1mb", "repl-diskless-sync-delay 0",
		}})
		p := planOf(servers.Primary.Address(), 4, 100*time.Millisecond, "SET", "{key}", "{value}")
		p.Target = plan.Target{Addresses: servers.Addresses(), Topology: plan.TopologyReplication}
		p.Info, p.Shape.Duration = 200*time.Millisecond, time.Minute
		p.Workload.Keyspace.Keys, p.Workload.Values = 20, plan.Values{MinBytes: 3_000_000, MaxBytes: 3_000_000}
		find := func(s *merged.Series) (sentences string, input Input) {
			in := Of(p, s)
			in.MeasuredFrom = recordedFrom
			return strings.Join(Resyncs(in), "\n"), in
		}
		complete := func(s *merged.Series) bool {
			got, _ := find(s)
			if redistest.ReleaseOf(t) != redistest.Redis7 && !strings.Contains(got, "because of client-output-buffer-limit") {
				return false
			}
			return strings.HasPrefix(got, "the primary at "+servers.Primary.Address()+" started ") &&
				strings.Contains(got, "("+servers.Replicas[0].Address()+" followed in ")
		}
		s := recordUntil(t, p, nil, complete)
		got, in := find(s)
		if !complete(s) {
			t.Errorf("%q, want both addresses and the limit", got)
		}
		if e := gather(in); e.clients() != "" {
			t.Errorf("clients: %s", e.clients())
		}
		t.Log(got)
	})
}
