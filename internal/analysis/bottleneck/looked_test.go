package bottleneck

import (
	"slices"
	"testing"
)

// In records of real runs, the component that limits the load has a figure at its limit, apart from those that latency
// events tell of; none has one if nothing limits it.
func TestLookedInRecordsOfRealRuns(t *testing.T) {
	for _, p := range provocations {
		t.Run(p.name, func(t *testing.T) {
			in := p.in
			in.Series, in.MeasuredFrom = recorded(t, p.name), recordedFrom
			list := Looked(in)
			if len(list) < 5 {
				t.Errorf("only %+v", list)
			}
			reached := func(c Component) bool {
				return slices.ContainsFunc(list, func(r Reading) bool { return (r.Component == c || c == None) && r.Reached() })
			}
			byEvents := p.want == Disk
			if got, want := reached(p.want), p.want != None; got != want && !byEvents {
				t.Errorf("something at the limit of %s: %v, want %v: %+v", p.want, got, want, list)
			}
		})
	}
}
