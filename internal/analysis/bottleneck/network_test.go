package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// A PING is evidence about the network of the load's requests only where they go to Redis, and where it is not longer
// than they are.
func TestNetworkOfTheLoadsPath(t *testing.T) {
	t.Parallel()
	far := func(f *figures) { f.response, f.agent.RoundTrip = 1200*time.Microsecond, 1_000_000 }
	exhausted := observedFor("db", 0.5, 0.49)
	for _, c := range []struct {
		name   string
		change func(*figures, *Input)
		uses   []record.PodUse
		want   Component
	}{
		{
			"http, and Redis is farther away than the API",
			func(f *figures, in *Input) { in.Redis, in.Backend, f.agent.RoundTrip = Behind, "the API", 5_000_000 },
			exhausted,
			Application,
		},
		{"http, and no observed pod", func(f *figures, in *Input) {
			far(f)
			in.Redis = Behind
			in.Backend = "the API"
		}, nil, Backend},
		{
			"cacheAside, and the database is at its limit",
			func(f *figures, in *Input) { far(f); in.Backend = "PostgreSQL" },
			exhausted,
			Application,
		},
		{
			"cacheAside, and the database is not",
			func(f *figures, in *Input) { far(f); in.Backend = "PostgreSQL" },
			nil,
			Network,
		},
		{"the database only", func(f *figures, in *Input) {
			far(f)
			in.Redis = Apart
			in.Backend = "PostgreSQL"
		}, nil, Backend},
		{"the database only, and Redis is busy with something else", func(f *figures, in *Input) {
			in.Redis, in.Backend, f.server.CPUMainThreadSeconds = Apart, "PostgreSQL", 0.99
		}, nil, Backend},
		{"Redis", func(f *figures, _ *Input) { far(f) }, nil, Network},
		{"Redis, nearer than an idle connection tells", func(f *figures, _ *Input) {
			f.response, f.service, f.agent.RoundTrip, f.agent.IdleRoundTrip = 74*time.Microsecond, 40*time.Microsecond, 81_000,
				79_000
		}, nil, None},
	} {
		f, in := idle(), Input{}
		c.change(&f, &in)
		in.Series = f.run(t, 20*time.Second)
		in.Series.AddPodUses(c.uses)
		got := Find(in)
		if got.Component != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, got.Component, got.Evidence, c.want)
		}
		if want := "a PING takes at least 0.08ms, longer than the median latency of 0.04ms (it waited for the CPU of its " +
			"node)"; got.Component == None && !strings.Contains(got.Evidence, want) {
			t.Errorf("%s: %s, want that %s", c.name, got.Evidence, want)
		}
	}
}
