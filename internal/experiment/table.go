package experiment

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result"
)

// Cell is the runs of one setting.
type Cell struct {
	Name string
	Runs []Run
}

// Question is what a comparison asks.
type Question struct {
	Primary []compare.Figure // those of which a verdict is told; empty = by what the runs are
	Margins map[string]compare.Margin
}

// Table compares cells with the first one. The i-th runs of all cells are a round.
func Table(cells []Cell, q Question) *result.Comparisons {
	for _, c := range cells {
		slices.SortStableFunc(c.Runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
	}
	baseline := cells[0]
	primary := q.Primary
	if len(primary) == 0 {
		primary = primaryOf(cells)
	}
	d := designOf(cells, len(primary))
	t := &result.Comparisons{Version: result.ComparisonVersion, Baseline: baseline.Name, Notes: notesOf(cells)}
	for _, figure := range ordered(primary) {
		isPrimary := contains(primary, figure)
		if !isPrimary && !has(baseline.Runs, figure) {
			continue
		}
		if m, ok := q.Margins[figure.Name]; ok {
			figure.Margin = m
		}
		of := d
		if !isPrimary {
			of.Comparisons = 1 // an ordinary interval
		}
		e := compare.New(of, figure, runsOf(cells, figure, d.Baseline))
		for _, c := range cells[1:] {
			told := e.Compare(c.Name, baseline.Name)
			row := rowOf(told, figure, isPrimary)
			row.Cell = c.Name
			if isPrimary {
				row.Verdict, row.Reason, row.Message = string(told.Verdict), string(told.Reason), told.Message(figure, baseline.Name)
				row.NotWorse, row.Same = met(told, compare.RequireNotWorse, figure), met(told, compare.RequireSame, figure)
			}
			t.Comparisons = append(t.Comparisons, row)
		}
	}
	return t
}

// ordered is the primary figures and then the others.
func ordered(primary []compare.Figure) []compare.Figure {
	all := slices.Clone(primary)
	for _, f := range compare.Figures() {
		if !contains(primary, f) {
			all = append(all, f)
		}
	}
	return all
}

func contains(figures []compare.Figure, f compare.Figure) bool {
	return slices.ContainsFunc(figures, func(o compare.Figure) bool { return o.Name == f.Name })
}

// primaryOf are the figures that are compared unless others are named: of runs with faults the outage and the recovery, of others the latency, and the
// throughput of users or the errors at a rate; the lost writes where they were counted.
func primaryOf(cells []Cell) []compare.Figure {
	var figures []compare.Figure
	all := allRuns(cells)
	if has(all, compare.RecoveryTime) {
		figures = append(figures, compare.Outage, compare.RecoveryTime)
	} else {
		first := compare.Throughput
		if slices.ContainsFunc(all, func(r Run) bool { return r.OpenLoop }) {
			first = compare.ErrorRate
		}
		figures = append(figures, first, compare.LatencyP99)
	}
	if has(all, compare.LostWrites) {
		figures = append(figures, compare.LostWrites)
	}
	return figures
}

func allRuns(cells []Cell) []Run {
	var all []Run
	for _, c := range cells {
		all = append(all, c.Runs...)
	}
	return all
}

// designOf takes what there is for what was planned.
func designOf(cells []Cell, figures int) compare.Design {
	rounds := 1
	for _, c := range cells[1:] {
		rounds = max(rounds, len(c.Runs))
	}
	d := compare.Design{Cells: len(cells), Comparisons: (len(cells) - 1) * figures, Baseline: max(1, len(cells[0].Runs)/rounds)}
	d.RunsPerRound = len(cells) - 1 + d.Baseline
	return d
}

// runsOf are the runs in rounds. A baseline with more runs has some in each.
func runsOf(cells []Cell, f compare.Figure, baseline int) []compare.Run {
	var runs []compare.Run
	for i, c := range cells {
		for n, r := range c.Runs {
			run := compare.Run{Cell: c.Name, Round: n}
			if i == 0 {
				run.Round = n / baseline
			}
			v, ok := r.Values[f.Name]
			switch {
			case r.Inconclusive != "" || !ok:
				run.Outcome = compare.Inconclusive
			case v.Censored:
				run.Value, run.Outcome = v.Value, compare.Censored
			default:
				run.Value = v.Value
			}
			runs = append(runs, run)
		}
	}
	return runs
}

func rowOf(c compare.Comparison, f compare.Figure, primary bool) result.Comparison {
	row := result.Comparison{
		Figure: f.Name, Unit: unitOf(f), Primary: primary, Repeats: c.Repeats, BaselineRepeats: c.BaselineRepeats, Inconclusive: c.Dropped,
		Median: finite(c.Median), BaselineMedian: finite(c.BaselineMedian), Method: string(c.Method), Margin: c.Margin, Needs: c.Needs,
	}
	if c.Method == "" {
		return row
	}
	interval, confidence := c.Interval, 1-c.Alpha
	if c.Verdict == compare.Same {
		interval, confidence = c.Same, 0.9
	}
	of := math.Expm1
	if f.Counted {
		of = func(x float64) float64 { return x }
	}
	row.Change, row.AtLeast, row.AtMost, row.Confidence, row.P = finite(of(c.Shift)), finite(of(interval.Low)), finite(of(interval.High)), confidence, finite(c.P)
	if math.IsInf(interval.Low, -1) {
		row.AtLeast = nil
	}
	return row
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func unitOf(f compare.Figure) result.Unit {
	switch f.Name {
	case compare.Throughput.Name:
		return result.UnitPerSecond
	case compare.ErrorRate.Name:
		return result.UnitShare
	case compare.LostWrites.Name, compare.LostRequests.Name:
		return result.UnitCount
	case compare.MaxCPU.Name:
		return result.UnitCores
	case compare.MaxMemory.Name:
		return result.UnitBytes
	}
	return result.UnitSeconds
}

// notesOf says where the runs are not in rounds: what changes with time differs between the cells then.
func notesOf(cells []Cell) []string {
	var notes []string
	for _, c := range cells {
		for _, o := range cells {
			if c.Name != o.Name && len(c.Runs) > 1 && len(o.Runs) > 1 && !c.Runs[0].Start.IsZero() && lastStart(c).Before(o.Runs[0].Start) {
				notes = append(notes, fmt.Sprintf("all runs of %s were before those of %s: what else changed meanwhile counts as a difference; run them in turns", c.Name, o.Name))
			}
		}
	}
	return notes
}

func lastStart(c Cell) time.Time {
	return slices.MaxFunc(c.Runs, func(a, b Run) int { return a.Start.Compare(b.Start) }).Start
}

// met is whether a comparison meets a requirement; nil if it cannot tell.
func met(c compare.Comparison, require compare.Require, f compare.Figure) *bool {
	is, known := c.Met(require, f)
	if !known {
		return nil
	}
	return &is
}
