package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Judgement is the outcome of an experiment.
type Judgement struct {
	Verdict v1alpha1.Verdict
	Reason  string
	Message string
}

// mostNamed is how many reasons a judgement names.
const mostNamed = 5

// Judge concludes from the runs and their comparison. earlier are the comparisons with an earlier
// run; regression is whether one of them decides.
func Judge(
	r *Record, rows []comparisons.Comparison, require v1alpha1.ComparisonRequirement,
	earlier []comparisons.Comparison, regression bool,
) Judgement {
	var missed, unknown []string
	for i, cell := range r.Cells {
		n := r.tally(i)
		if n.missed > 0 {
			missed = append(missed, fmt.Sprintf("%d of %d runs of %s: %s", n.missed, n.runs, cell, n.why))
		}
		if 3*n.inconclusive > n.runs || n.runs == 0 {
			unknown = append(unknown,
				fmt.Sprintf("%d of %d runs of %s are inconclusive", n.inconclusive, n.runs, cell))
		}
	}
	for _, row := range rows {
		met := meets(&row, require)
		switch {
		case met == nil:
			unknown = append(unknown, fmt.Sprintf("%s: %s", row.Cell, row.Message))
		case !*met:
			missed = append(missed, fmt.Sprintf("%s: %s", row.Cell, row.Message))
		}
	}
	for _, row := range earlier {
		if regression && row.Verdict == string(v1alpha1.ComparisonRegressed) {
			missed = append(missed, fmt.Sprintf("%s has regressed: %s", row.Cell, row.Message))
		}
	}
	switch {
	case len(missed) > 0:
		return Judgement{v1alpha1.VerdictFail, v1alpha1.ReasonObjectivesNotMet, some(missed)}
	case len(unknown) > 0:
		return Judgement{v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, some(unknown)}
	}
	return Judgement{v1alpha1.VerdictPass, "ObjectivesMet", ""}
}

// meets is whether a comparison shows what is required; nil if it is inconclusive.
func meets(row *comparisons.Comparison, require v1alpha1.ComparisonRequirement) *bool {
	//exhaustive:enforce
	switch require {
	case v1alpha1.RequireNone:
	case v1alpha1.RequireNotWorse:
		return row.NotWorse
	case v1alpha1.RequireSame:
		return row.Same
	}
	return new(true)
}

func some(reasons []string) string {
	if more := len(reasons) - mostNamed; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(reasons[:mostNamed], "; "), more)
	}
	return strings.Join(reasons, "; ")
}

// Missed reports whether a run has missed an objective.
func (r *Record) Missed() bool {
	return slices.ContainsFunc(r.Runs, func(run RecordedRun) bool { return run.Missed })
}

// tally counts the runs of a cell.
type tally struct {
	runs, failed, missed, inconclusive int
	why                                string // the last of those missed an objective that did
	// why the last of those failed, or is inconclusive, that did
	last string
}

func (r *Record) tally(cell int) (n tally) {
	for i := range r.Runs {
		of := &r.Runs[i]
		if of.Cell != cell {
			continue
		}
		n.runs++
		if of.Failed != "" {
			n.failed++
		}
		if of.Missed {
			n.missed++
			n.why = of.Failed
		}
		if of.Inconclusive != "" {
			n.inconclusive++
		}
		if why := cmp.Or(of.Failed, of.Inconclusive); why != "" {
			n.last = of.LoadTest + ": " + why
		}
	}
	return n
}

// Counts are the recorded runs by cell, counted.
func (r *Record) Counts(baselineOf func(cell int) string) []v1alpha1.ExperimentCell {
	var cells []v1alpha1.ExperimentCell
	for i, name := range r.Cells {
		n := r.tally(i)
		c := v1alpha1.ExperimentCell{
			Name:         name,
			Finished:     int32(n.runs),
			Failed:       int32(n.failed),
			Inconclusive: int32(n.inconclusive),
			Message:      n.last,
		}
		if baseline := baselineOf(i); baseline != name {
			c.Baseline = baseline
		}
		cells = append(cells, c)
	}
	return cells
}
