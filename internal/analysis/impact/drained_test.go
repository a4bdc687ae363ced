package impact

import (
	"testing"
	"time"
)

// TestWithoutWindowThatPassesThePlannedEnd: a load of 60 s drains for 2 s more. A window that is left out ends with the plan, in the drain or after it: the
// measured time is that before the window.
func TestWithoutWindowThatPassesThePlannedEnd(t *testing.T) {
	const planned = 60 * time.Second
	s := load{rate: 1000, length: planned + 2*time.Second, down: []Window{seconds(60, 62)}}.record(t)
	s.Finish(0)
	for _, to := range []time.Duration{planned, planned + time.Second, planned + 10*time.Second} {
		p := partTo(s, 0, planned, []Window{{40 * time.Second, to}})
		sum := summarize(s, p)
		if sum.Measured != 40*time.Second || !near(sum.Throughput, 1000, 1) || p.measured(s) != sum.Measured {
			t.Errorf("until %v: %.1f/s over %v, stalls in %v", to, sum.Throughput, sum.Measured, p.measured(s))
		}
	}
}

// TestDrainIsNoDip: a constant load of 60 s, of which a fault is active until after the planned end, drains for 4 s. The fault costs nothing, and there is no dip.
func TestDrainIsNoDip(t *testing.T) {
	const planned = 60 * time.Second
	s := load{rate: 1000, length: planned + 4*time.Second, down: []Window{seconds(60, 64)}}.record(t)
	s.Finish(0)
	asked := Planned{End: planned}
	w := Analyze(s, Fault{At: 40 * time.Second, Active: seconds(40, 70)}, Options{Planned: asked}).WhileActive
	if w == nil || w.Length != 20*time.Second || !near(w.Throughput, 1000, 1) || !near(w.Change, 0, 0.001) {
		t.Errorf("while the fault was active: %+v", w)
	}
	if dips := Anomalies(s, 0, asked, nil); len(dips) > 0 {
		t.Errorf("dips: %+v", dips)
	}
}
