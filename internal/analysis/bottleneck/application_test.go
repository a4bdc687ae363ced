package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// observedFor returns readings of a container every 15 s, with the CPU usage of each in cores.
func observedFor(name string, limit float64, cpu ...float64) []record.PodUse {
	var uses []record.PodUse
	for i, cores := range cpu {
		uses = append(uses, record.PodUse{
			At: int64(i+1) * int64(15*time.Second), Window: int64(15 * time.Second), Name: name, Pod: name + "-0",
			Container: "app",
			CPU:       cores, MaxCPU: cores, CPULimit: limit, Memory: 1 << 20,
		})
	}
	return uses
}

// thinned returns one reading of two, as a long run keeps them.
func thinned(uses []record.PodUse) []record.PodUse {
	one := uses[1]
	one.Window, one.CPU, one.MaxCPU = 2*one.Window, (uses[0].CPU+one.CPU)/2, max(uses[0].CPU, one.CPU)
	return []record.PodUse{one}
}

func TestApplication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		uses     []record.PodUse
		change   func(*figures, *Input)
		want     Component
		pods     string
		evidence string
	}{
		{
			"at its limit", observedFor("api", 0.5, 0.48, 0.48), nil, Application, "api",
			"api: container app of pod api-0 used 0.48 cores of CPU, 96% of its limit of 0.50 cores",
		},
		{
			"at its limit for a while", observedFor("api", 0.5, 0.3, 0.49), nil, Application, "api",
			"98% of its limit of 0.50 cores, over its busiest 15s, 79% on average",
		},
		{
			"one core of one thread, without a limit", observedFor("node", 0, 0.98, 1.01), nil, Application, "node",
			"node: container app of pod node-0 used 1.01 cores of CPU, 101% of one core, which it does not exceed, and it has no CPU limit",
		},
		{
			"several threads, without a limit", observedFor("java", 0, 0.98, 1.9), nil, Backend, "",
			"of the observed pods, java used at most 1.90 cores of CPU, without a limit",
		},
		{
			"below its limit", observedFor("api", 2, 0.98, 1.01), nil, Backend, "",
			"of the observed pods, api used at most 50% of its CPU limit",
		},
		{
			"the busiest of two", append(observedFor("db", 1, 0.91, 0.91), observedFor("api", 1, 0.97, 0.97)...), nil,
			Application, "api", "97% of its limit",
		},
		{
			"Redis at its limit, too",
			observedFor("api", 0.5, 0.48, 0.48),
			func(f *figures, _ *Input) { f.server.CPUMainThreadSeconds = 0.95 },
			Application,
			"api",
			"",
		},
		{
			"the load generator at its limit, too",
			observedFor("api", 0.5, 0.48, 0.48),
			func(f *figures, _ *Input) { f.agent.CPUSeconds = 0.97 },
			LoadGenerator,
			"",
			"",
		},
		{"only during a fault", observedFor("api", 0.5, 0.2, 0.48), func(_ *figures, in *Input) {
			in.Without = []summary.Window{{From: 15 * time.Second, To: 30 * time.Second}}
		}, Backend, "", ""},
		{"only during the warm-up", observedFor("api", 0.5, 0.48, 0.2), func(_ *figures, in *Input) {
			in.MeasuredFrom = 15 *
				time.Second
		}, Backend, "", ""},
		{
			"the load does not pass through it",
			observedFor("api", 0.5, 0.48, 0.48),
			func(_ *figures, in *Input) { in.Backend = "" },
			None,
			"",
			"nothing on the way of the requests was at its limit: the busiest load pod used 30% of its CPU",
		},
		{
			"nor is it silent about it",
			observedFor("api", 0.5, 0.48, 0.48),
			func(_ *figures, in *Input) { in.Backend = "" },
			None,
			"",
			"; of the observed pods, api used at most 96% of its CPU limit",
		},
		{
			"at the limit that it had then", append(observedFor("api", 0.5, 0.48), observedFor("api", 2, 0, 0.6)[1:]...), nil,
			Application, "api",
			"used 0.48 cores of CPU, 96% of its limit of 0.50 cores",
		},
		{
			"a limit that came later", append(observedFor("api", 0, 1.9), observedFor("api", 2, 0, 1.9)[1:]...), nil,
			Application, "api", "95% of its limit of 2.00 cores",
		},
		{
			"a merged reading", thinned(observedFor("api", 0.5, 0.2, 0.49)), nil, Application, "api",
			"used 0.49 cores of CPU, 98% of its limit of 0.50 cores, over its busiest 30s",
		},
	} {
		f, in := idle(), Input{Backend: "the API"}
		if c.change != nil {
			c.change(&f, &in)
		}
		in.Series = f.run(t, 30*time.Second)
		in.Series.AddPodUses(c.uses)
		got := Find(in)
		if got.Component != c.want || got.Pods != c.pods || !strings.Contains(got.Evidence, c.evidence) {
			t.Errorf("%s: %+v, want %s of %q with %q", c.name, got, c.want, c.pods, c.evidence)
		}
	}
}
