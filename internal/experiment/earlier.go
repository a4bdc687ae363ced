package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Earlier is a run of an experiment that has ended, as others are compared with it.
type Earlier struct {
	Name     string // of its RedisExperiment
	Template string // HashOf its spec; "" = unknown
	Record   *Record
}

// Against are the comparisons of an experiment with an earlier run.
type Against struct {
	Rows  []comparisons.Comparison // of each cell with itself; only those that both have
	Notes []string                 // what all cells have in common, and what else has changed
}

// CompareWith compares each cell with itself in an earlier run. template is HashOf the experiment's
// own spec.
func CompareWith(
	r *Record, template string, earlier Earlier, q Question, baselineOf func(cell int) string,
) Against {
	var a Against
	now := r.CellsOf(baselineOf)
	then := earlier.Record.CellsOf(func(int) string { return "" })
	var common []Cell
	for _, c := range now {
		if slices.ContainsFunc(then, func(o Cell) bool { return o.Name == c.Name }) {
			common = append(common, c)
		}
	}
	for _, f := range q.Figures() {
		a.figure(f, q, common, now, then, earlier.Name)
	}
	lacking := len(now) - len(common)
	if lacking > 0 && len(common) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d cells are not in %s", lacking, earlier.Name))
	}
	was, is := earlier.Record.servers(), r.servers()
	if was != is && was != "" && is != "" {
		a.Notes = append(a.Notes,
			fmt.Sprintf("the servers were %s in %s, and are %s now", was, earlier.Name, is))
	}
	if earlier.Template != "" && earlier.Template != template {
		a.Notes = append(a.Notes,
			fmt.Sprintf("template, faults or matrix differ from those of %s", earlier.Name))
	}
	return a
}

// Figures are the primary ones, with the margins that were asked for.
func (q Question) Figures() []compare.Figure {
	figures := slices.Clone(q.Primary)
	for i, f := range figures {
		if m, ok := q.Margins[f.Name]; ok {
			figures[i].Margin = m
		}
	}
	return figures
}

// figure compares one figure of all cells.
func (a *Against) figure(f compare.Figure, q Question, common, now, then []Cell, name string) {
	of := compare.New(*q.Design, f, runsOf(now, f))
	earlier := compare.New(*q.Design, f, runsOf(then, f))
	var all []compare.Comparison
	for _, c := range common {
		before := then[slices.IndexFunc(then, func(o Cell) bool { return o.Name == c.Name })]
		if !has(c.Runs, f) || !has(before.Runs, f) {
			row := notMeasured(c, before, f)
			row.Baseline = name
			a.Rows = append(a.Rows, row)
			continue
		}
		comparisons := len(now) * len(q.Primary)
		comparison := withinWaits(of.Against(earlier, c.Name, comparisons), f, c, before,
			func(c, before Cell) compare.Comparison {
				return compare.New(*q.Design, f,
					runsOf(replaced(now, c), f)).Against(compare.New(*q.Design, f,
					runsOf(replaced(then, before), f)), c.Name, comparisons)
			})
		all = append(all, comparison)
		row := rowOf(comparison, f, true)
		row.Cell = c.Name
		row.Baseline = name
		row.Verdict = string(earlierVerdict(comparison.Verdict))
		row.Reason = string(comparison.Reason)
		row.Message = comparison.Message(f, name)
		row.NotWorse = met(comparison, compare.RequireNotWorse, f)
		row.Same = met(comparison, compare.RequireSame, f)
		a.Rows = append(a.Rows, row)
		a.noteRelative(f, comparison, of, earlier, c, then)
	}
	by := compare.OfAll(all)
	if len(all) > 1 && !f.Counted && !math.IsNaN(by) {
		a.Notes = append(a.Notes,
			fmt.Sprintf(
				"%s of all cells: %s (median): what they have in common, such as machine, version or neighbours",
				f.Name, compare.Signed(by)))
	}
}

// noteRelative says how a cell that differs has changed against its own baseline: what differs
// between the days cancels out.
func (a *Against) noteRelative(
	f compare.Figure, comparison compare.Comparison, now, earlier *compare.Experiment, c Cell, then []Cell,
) {
	differs := comparison.Verdict == compare.Worse || comparison.Verdict == compare.Better
	if !differs || f.Counted || c.Baseline == c.Name ||
		!slices.ContainsFunc(then, func(o Cell) bool { return o.Name == c.Baseline }) {
		return
	}
	by, of, ok := now.Relative(earlier, c.Name, c.Baseline)
	if ok {
		a.Notes = append(a.Notes,
			fmt.Sprintf("%s of %s relative to %s: %s", f.Name, c.Name, c.Baseline, compare.Shifted(by, of)))
	}
}

func earlierVerdict(v compare.Verdict) v1alpha1.ComparisonVerdict {
	switch v {
	case compare.Worse:
		return v1alpha1.ComparisonRegressed
	case compare.Better:
		return v1alpha1.ComparisonImproved
	}
	return v1alpha1.ComparisonVerdict(v)
}

// servers are the different ones of the runs.
func (r *Record) servers() string {
	var all []string
	for i := range r.Runs {
		of := r.Runs[i].Server
		if of != "" && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Regressed are the comparisons that show a regression.
func (a *Against) Regressed() []comparisons.Comparison {
	return slices.DeleteFunc(slices.Clone(a.Rows), func(c comparisons.Comparison) bool {
		return c.Verdict != string(v1alpha1.ComparisonRegressed)
	})
}

// Conclusive is the number of comparisons with a verdict.
func (a *Against) Conclusive() (n int) {
	for i := range a.Rows {
		if a.Rows[i].Verdict != string(v1alpha1.ComparisonInconclusive) {
			n++
		}
	}
	return n
}

// HashOf tells specs apart of which the figures are not comparable: those with other cells, another
// load, or other faults.
func HashOf(spec *v1alpha1.RedisExperimentSpec) string {
	// cannot fail: it was read from JSON
	text, _ := json.Marshal([]any{spec.Template, spec.Faults, spec.Matrix})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
