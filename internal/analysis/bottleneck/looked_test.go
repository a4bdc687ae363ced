package bottleneck

import (
	"slices"
	"testing"
)

// In records of real runs, the component that limits the load has a figure at its limit, apart from those that latency events tell of.
func TestLookedInRecordsOfRealRuns(t *testing.T) {
	for _, p := range provocations {
		t.Run(p.name, func(t *testing.T) {
			in := p.in
			in.Series, in.MeasuredFrom = recorded(t, p.name), recordedFrom
			list := Looked(in)
			if len(list) < 5 {
				t.Errorf("only %+v", list)
			}
			byEvents := p.want == Disk && !slices.ContainsFunc(list, func(r Reading) bool { return r.Component == Disk && r.Reached() })
			if reached := slices.ContainsFunc(list, func(r Reading) bool { return r.Component == p.want && r.Reached() }); !reached && !byEvents {
				t.Errorf("%s is not at a limit: %+v", p.want, list)
			}
		})
	}
}
