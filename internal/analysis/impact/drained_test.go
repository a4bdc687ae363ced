package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// TestDrainCostsNothing: a constant load of 60 s, of which a fault is active until after the planned end, drains for 4
// s. The fault costs nothing.
func TestDrainCostsNothing(t *testing.T) {
	const planned = 60 * time.Second
	s := recorded.Load{Rate: 1000, Length: planned + 4*time.Second, Down: []summary.Window{seconds(60, 64)}}.Record(t)
	s.Finish(0)
	w := Analyze(s, Fault{At: 40 * time.Second, Active: seconds(40, 70)}, Options{
		Planned: plan.Planned{End: planned},
	}).WhileActive
	if w == nil || w.Length != 20*time.Second || !near(w.Throughput, 1000, 1) || !near(w.Change, 0, 0.001) {
		t.Errorf("while the fault was active: %+v", w)
	}
}
