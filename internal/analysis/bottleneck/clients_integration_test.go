//go:build integration

package bottleneck

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Connections of the load that a real Redis closes by one of its limits are named with that limit; a version that does
// not count them is not said to have been at no limit without a word of it. The limit is set when the load has begun: a
// load that gets no reply at all does not begin.
func TestRedisClosesClientsByItsLimits(t *testing.T) {
	read, write := []string{"LRANGE", "list", "0", "-1"}, []string{"SET", "{key}", "{value}"}
	for _, c := range []struct {
		name, limit, value string
		words              []string
		evidence           string
		counted            bool // by every version
	}{
		{"evicted", "maxmemory-clients", "1mb", read, "clients, as all of them together exceeded maxmemory-clients", true},
		{
			"output", "client-output-buffer-limit", "normal 100000 0 0", read,
			"clients, as replies to them exceeded client-output-buffer-limit", false,
		},
		{
			"query", "client-query-buffer-limit", "1mb", write, "clients, as their requests exceeded client-query-buffer-limit",
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T) {
				server := redistest.NewServer(t, redistest.Options{})
				element := strings.Repeat("x", 1000)
				for range 200 {
					server.Do("RPUSH", "list", element)
				}
				p := planOf(server.Address(), 20, 10*time.Millisecond, c.words...)
				p.Info, p.Shape.Duration = 200*time.Millisecond, time.Minute
				p.Workload.Keyspace.Keys, p.Workload.Values = 10, plan.Values{MinBytes: 2_000_000, MaxBytes: 2_000_000}
				want, evidence := Clients, c.evidence
				if !c.counted && redistest.ReleaseOf(t) == redistest.Redis7 {
					// whatever else this machine makes the limit
					want, evidence = "", "requests failed as their connections were closed"
				}
				find := func(s *merged.Series) Finding {
					in := Of(p, s)
					in.MeasuredFrom = recordedFrom
					return Find(in)
				}
				found := func(s *merged.Series) bool {
					got := find(s)
					return s.End() > recordedFrom+2*time.Second && (got.Component == want || want == "") &&
						strings.Contains(got.Evidence, evidence)
				}
				limited := func(context.Context) { server.Do("CONFIG", "SET", c.limit, c.value) }
				if s := recordUntil(t, p, limited, found); !found(s) {
					t.Errorf("%+v\nwant %s: %s", find(s), want, evidence)
				} else {
					t.Log(find(s).Evidence)
				}
			})
		})
	}
}
