package history

import (
	"math/rand/v2"
	"testing"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
)

// The same holds against an earlier run, and for the history of a schedule.
func TestEarlierLatenciesOfGeneratorsThatWaited(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 6))
	record := func(value, least, late float64) *experiment.Record {
		r := recordOf(compare.LatencyP99, 6, []string{"a"}, func() float64 { return value * (1 + random.Float64()/100) })
		for i := range r.Runs {
			v := r.Runs[i].Values[compare.LatencyP99.Name]
			v.Least, v.Late = least*v.Value/value, late
			r.Runs[i].Values[compare.LatencyP99.Name] = v
		}
		return r
	}
	q := experiment.Question{
		Primary: []compare.Figure{compare.LatencyP99},
		Design:  &compare.Design{Cells: 1, RunsPerRound: 1, Baseline: 1, Comparisons: 1},
	}
	for _, c := range []struct {
		least, late float64
		verdict     string
		changes     int
	}{{0.0001, 0.10, "Inconclusive", 0}, {0.002, 0.015, "Regressed", 1}} {
		got := experiment.CompareWith(record(0.003, c.least, c.late), "one",
			experiment.Earlier{Name: "before", Template: "one", Record: record(0.0003, 0.0001, 0.015)}, q,
			func(int) string { return "a" })
		if len(got.Rows) != 1 || got.Rows[0].Verdict != c.verdict {
			t.Errorf("%v late: %+v, want %s", c.late, got.Rows, c.verdict)
		}
		h := &History{Version: Version}
		for n := range 30 {
			e := nightOf(n, compare.LatencyP99, 1)
			e.Record = record(0.0003, 0.0001, 0.015)
			if n >= 20 {
				e.Record = record(0.003, c.least, c.late)
			}
			h.Add(e)
		}
		if len(h.Changes) != c.changes || len(h.Regressions) != c.changes {
			t.Errorf("%v late: the changes are %+v, the regressions %+v, want %d", c.late, h.Changes, h.Regressions, c.changes)
		}
	}
}

// A regression ends with runs that are as fast as before for certain. One whose load generators waited for a CPU tells
// nothing, unless it is.
func TestRegressionsBesideWaits(t *testing.T) {
	t.Parallel()
	h := &History{Version: Version}
	for n := range 20 {
		h.Add(nightOf(n, compare.LatencyP99, 0.010))
	}
	h.regress(Regression{
		RegressedFigure: RegressedFigure{Cell: "a", Figure: compare.LatencyP99.Name, Level: 0.005},
		Since:           "n-19",
	})
	left := func(n int, value, least float64) int {
		h.Add(thatWaited(nightOf(n, compare.LatencyP99, value), least))
		return len(h.Regressions)
	}
	if n := left(20, 0.005, 0.001); n != 1 {
		t.Error("it ended with one run")
	}
	if n := left(21, 0.050, 0.001); n != 1 || h.Regressions[0].Back != 1 {
		t.Errorf("after a run that tells nothing: %+v", h.Regressions)
	}
	if n := left(22, 0.006, 0.001); n != 0 {
		t.Errorf("after two that were as fast as before: %+v", h.Regressions)
	}
}

// Histories at random: Redis gets slower by a factor, or faster, or neither, and the load generators wait for a CPU in
// some nights, always, or from a night on. What they add is no change; where they add nothing, each change is found.
func TestRandomHistoriesOfGeneratorsThatWaited(t *testing.T) {
	t.Parallel()
	const nights = 45
	slower, told := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 35))
		factor, at := []float64{1, 1, 3, 1.0 / 3}[random.IntN(4)], 15+random.IntN(15)
		often, from := []float64{0, 0.3, 1}[random.IntN(3)], random.IntN(nights)
		h := &History{Version: Version}
		for n := range nights {
			value := 0.001 * (1 + random.Float64()/50)
			if n >= at {
				value *= factor
			}
			e := nightOf(n, compare.LatencyP99, value)
			if n >= from && random.Float64() < often {
				e = thatWaited(nightOf(n, compare.LatencyP99, value*(1+10*random.Float64())), value*random.Float64())
			}
			h.Add(e)
		}
		for _, c := range h.Changes {
			if factor == 1 || c.Worse != (factor > 1) {
				t.Errorf("seed %d: %+v, where Redis changed by %.2f", seed, c, factor)
			}
		}
		for _, r := range h.Regressions {
			if factor <= 1 {
				t.Errorf("seed %d: %+v, where Redis changed by %.2f", seed, r, factor)
			}
		}
		if often == 0 && factor != 1 && len(h.Changes) != 2 {
			t.Errorf("seed %d: %d changes of two cells are found", seed, len(h.Changes))
		}
		if often > 0 && often < 1 && factor > 1 {
			slower++
			if len(h.Changes) > 0 {
				told++
			}
		}
	}
	if t.Logf("with waits in some nights %d of %d slower histories are told", told, slower); told < slower/2 {
		t.Error("too few")
	}
}
