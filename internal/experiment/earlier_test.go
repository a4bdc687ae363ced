package experiment

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Each cell is compared with itself in the earlier run. What is claimed lies beyond the margin as a whole; the notes
// say what all have in common.
func TestCompareWith(t *testing.T) {
	t.Parallel()
	cells := []string{"a", "b", "c", "d", "new"}
	q := Question{
		Primary: []compare.Figure{compare.LatencyP99},
		Margins: map[string]compare.Margin{"latencyP99": {Relative: 0.1}},
		Design:  &compare.Design{Cells: 5, RunsPerRound: 5, Baseline: 1, Comparisons: 4},
	}
	level := []float64{0.010, 0.020, 0.030, 0.040, 0.050}
	now := valuesOf(compare.LatencyP99, 6, cells, func(c int) float64 {
		return level[c] *
			[]float64{1, 1.05, 1.5, 0.5, 1}[c]
	})
	then := valuesOf(compare.LatencyP99, 6, []string{"d", "c", "b", "a"}, func(c int) float64 { return level[3-c] })
	for i := range now.Runs {
		now.Runs[i].Server = "redis 7.2.4"
	}
	got := CompareWith(now, "one", Earlier{Name: "before", Template: "two", Record: then}, q, func(int) string {
		return "a"
	})
	want := map[string]string{"a": "Same", "b": "Same", "c": "Regressed", "d": "Improved"}
	if len(got.Rows) != 4 || len(got.Regressed()) != 1 || got.Conclusive() == 0 {
		t.Fatalf("%+v", got.Rows)
	}
	for _, row := range got.Rows {
		if row.Verdict != want[row.Cell] || row.Baseline != "before" {
			t.Errorf("%s: %+v, want %s", row.Cell, row, want[row.Cell])
		}
	}
	if m := got.Regressed()[0].Message; !strings.HasPrefix(m, "latencyP99 49.9%") ||
		!strings.Contains(m, "higher than before") {
		t.Errorf("%q", m)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, part := range []string{
		"latencyP99 of all cells: +", "latencyP99 of c relative to a: +49.9%",
		"1 cells are not in before", "the servers were redis 7.0.15 in before, and are redis 7.2.4 now",
		"differ from those of before",
	} {
		if !strings.Contains(notes, part) {
			t.Errorf("no note %q:\n%s", part, notes)
		}
	}
}

// Without a cell or a figure in common nothing is told, and nothing regresses.
func TestCompareWithNothingInCommon(t *testing.T) {
	t.Parallel()
	q := Question{
		Primary: []compare.Figure{compare.Throughput},
		Design:  &compare.Design{Cells: 2, RunsPerRound: 2, Baseline: 1, Comparisons: 1},
	}
	now := valuesOf(compare.Throughput, 4, []string{"a", "b"}, func(int) float64 { return 100 })
	none := func(int) string { return "" }
	if got := CompareWith(now, "",
		Earlier{Name: "before", Record: valuesOf(compare.Throughput, 4, []string{"c"}, func(int) float64 { return 100 })}, q,
		none); len(got.Rows) > 0 || got.Conclusive() > 0 {
		t.Errorf("other cells: %+v", got)
	}
	got := CompareWith(now, "",
		Earlier{Name: "before", Record: valuesOf(compare.Outage, 4, []string{"a", "b"}, func(int) float64 { return 1 })}, q,
		none)
	if len(got.Rows) != 2 || got.Conclusive() > 0 || got.Rows[0].Verdict != "Inconclusive" || got.Rows[0].Reason != "NotMeasured" {
		t.Errorf("another figure: %+v", got)
	}
	if j := Judge(now, nil, "None", []comparisons.Comparison{{Cell: "a", Verdict: "Regressed", Message: "slower"}},
		true); j.Verdict != "Fail" || !strings.Contains(j.Message, "a has regressed: slower") {
		t.Errorf("%+v", j)
	}
}

// valuesOf is an experiment of these cells, of which each run gives the cell's value, and up to 1 % more.
func valuesOf(f compare.Figure, repeats int, cells []string, value func(cell int) float64) *Record {
	random := rand.New(rand.NewPCG(1, uint64(repeats)))
	r := &Record{Version: RecordVersion, Cells: cells}
	for round := range repeats {
		for cell := range cells {
			r.Runs = append(r.Runs, RecordedRun{
				Cell:     cell,
				Round:    round + 1,
				LoadTest: "load",
				Start:    start.Add(time.Duration(len(r.Runs)) * time.Minute),
				Server:   "redis 7.0.15",
				Values:   map[string]Value{f.Name: {Value: value(cell) * (1 + random.Float64()/100)}, "maxMemory": {Value: 1}},
			})
		}
	}
	return r
}
