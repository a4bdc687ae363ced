package experiment

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Check finds what shows that a record is not of this plan.
func (p *Plan) Check(r *Record) error {
	if names := p.Names(); !slices.Equal(r.Cells, names) {
		for _, cell := range r.Cells {
			if !slices.Contains(names, cell) {
				return fmt.Errorf(
					"the record has a cell %.64q that the spec does not have: it is of another experiment", cell)
			}
		}
		return fmt.Errorf(
			"the record has %d cells, and the spec %d, or they are in another order: it is of another experiment",
			len(r.Cells), len(names))
	}
	type place struct{ cell, round int }
	runs := map[place]int{}
	for i := range r.Runs {
		of := place{r.Runs[i].Cell, r.Runs[i].Round}
		if of.round < 1 || of.round > p.Repeat {
			return fmt.Errorf("run %d of the record is of round %d of %d", i+1, of.round, p.Repeat)
		}
		if runs[of]++; runs[of] > p.repeats(of.cell) {
			return fmt.Errorf("the record has more runs of %s in round %d than the spec", r.Cells[of.cell],
				of.round)
		}
	}
	return nil
}

// Outcome is the comparisons of an experiment, and the verdict by what is required; "" = by its
// spec. Until it is complete there are figures, but no verdicts: the number of runs was fixed in
// advance, to rule out optional stopping.
func (p *Plan) Outcome(
	e *v1alpha1.RedisExperiment, r *Record, require v1alpha1.ComparisonRequirement,
) *comparisons.Comparisons {
	question := p.Question(&e.Spec.Compare)
	table := Table(r.CellsOf(p.BaselineOf), question)
	table.Notes = append(table.Notes, p.Warnings(question)...)
	if p.Provisional(table, e, r) {
		return table
	}
	if require == "" {
		require = e.Spec.Compare.Require
	}
	primary := slices.DeleteFunc(slices.Clone(table.Comparisons), func(c comparisons.Comparison) bool {
		return !c.Primary
	})
	j := Judge(r, primary, require, earlierOf(&e.Status),
		e.Spec.Objectives != nil && e.Spec.Objectives.NoRegression)
	table.Experiment = &comparisons.Experiment{
		Name:     e.Name,
		Runs:     p.Runs(),
		Finished: len(r.Runs),
		Verdict:  string(j.Verdict),
		Message:  j.Message,
	}
	return table
}

// Provisional takes the verdicts out of a comparison with an experiment that is not complete, and
// says why. It reports whether it has. One that stopOnFailure has ended may have a verdict
// nevertheless: a missed objective needs no comparison.
func (p *Plan) Provisional(
	table *comparisons.Comparisons, e *v1alpha1.RedisExperiment, r *Record,
) bool {
	why := p.Incomplete(e, r)
	if why == "" {
		return false
	}
	table.Experiment = &comparisons.Experiment{
		Name:     e.Name,
		Runs:     p.Runs(),
		Finished: len(r.Runs),
		Message:  why,
	}
	if e.Status.Verdict == v1alpha1.VerdictFail {
		table.Experiment.Verdict = string(v1alpha1.VerdictFail)
	}
	for i := range table.Comparisons {
		table.Comparisons[i] = withoutVerdict(table.Comparisons[i])
	}
	return true
}

// Incomplete is why an experiment has no verdict; "" = it has one.
func (p *Plan) Incomplete(e *v1alpha1.RedisExperiment, r *Record) string {
	complete := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionComplete)
	switch {
	case complete == nil:
		return "it has not begun"
	case complete.Status != metav1.ConditionTrue || complete.Reason == v1alpha1.ReasonAborted:
		return complete.Reason + ": " + complete.Message
	case len(r.Runs) < p.Runs():
		return fmt.Sprintf("the record, of %d runs, was saved before it was complete", len(r.Runs))
	}
	return ""
}

// withoutVerdict is a comparison with its figures only.
func withoutVerdict(c comparisons.Comparison) comparisons.Comparison {
	c.Verdict = ""
	c.Reason = ""
	c.Message = ""
	c.NotWorse = nil
	c.Same = nil
	c.P = nil
	c.Needs = 0
	return c
}

// earlierOf is what a status says of the comparison with an earlier run.
func earlierOf(s *v1alpha1.RedisExperimentStatus) []comparisons.Comparison {
	if s.Earlier == nil {
		return nil
	}
	var rows []comparisons.Comparison
	for _, c := range s.Earlier.Comparison {
		rows = append(rows, comparisons.Comparison{
			Cell:    c.Cell,
			Figure:  c.Figure,
			Verdict: string(c.Verdict),
			Message: c.Message,
		})
	}
	return rows
}
