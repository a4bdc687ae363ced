package redisexperiment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// maxNotes is how many notes a status has.
const maxNotes = 32

// setComparison compares the cells. Until the experiment is complete there are no verdicts: the
// number of runs was fixed in advance, to rule out optional stopping.
func (s *scope) setComparison(complete bool) {
	status := &s.experiment.Status
	status.Comparison, status.Notes = nil, nil
	if len(s.record.Runs) == 0 {
		return
	}
	table := s.table()
	for _, row := range table.Comparisons {
		if row.Primary {
			status.Comparison = append(status.Comparison, inStatus(row, complete))
		}
	}
	for _, note := range table.Notes[:min(len(table.Notes), maxNotes)] {
		status.Notes = append(status.Notes, digest.Truncate(note, 512))
	}
}

// table compares each cell with its baseline.
func (s *scope) table() *comparisons.Comparisons {
	return experiment.Table(s.record.CellsOf(s.plan.BaselineOf),
		s.plan.Question(&s.experiment.Spec.Compare))
}

// inStatus is a comparison as the status shows it.
func inStatus(row comparisons.Comparison, complete bool) v1alpha1.ComparisonResult {
	decimal := func(v *float64) v1alpha1.Decimal {
		if v == nil {
			return ""
		}
		return v1alpha1.DecimalOf(*v)
	}
	c := v1alpha1.ComparisonResult{
		Cell:            row.Cell,
		Figure:          row.Figure,
		Change:          decimal(row.Change),
		AtLeast:         decimal(row.AtLeast),
		AtMost:          decimal(row.AtMost),
		Confidence:      decimal(&row.Confidence),
		Median:          decimal(row.Median),
		BaselineMedian:  decimal(row.BaselineMedian),
		Repeats:         int32(row.Repeats),
		BaselineRepeats: int32(row.BaselineRepeats),
	}
	if row.Change == nil {
		c.Confidence = ""
	}
	if complete {
		c.Verdict = v1alpha1.ComparisonVerdict(row.Verdict)
		c.Reason = row.Reason
		c.Message = digest.Truncate(row.Message, 512)
		c.Needs = int32(row.Needs)
	}
	return c
}

// judge concludes from all runs.
func (s *scope) judge(d lifecycle.Decision[lifecycle.ExperimentAction], o state.Outcome) {
	status := &s.experiment.Status
	switch {
	case o.Failed && d.Reason == v1alpha1.ReasonRunFailed && s.record.Missed():
		status.Verdict = v1alpha1.VerdictFail
		state.SetCondition(&status.Conditions, s.experiment.Generation, v1alpha1.ConditionObjectivesMet,
			metav1.ConditionFalse, v1alpha1.ReasonObjectivesNotMet, d.Message)
		return
	case o.Failed, s.seen.Restored != "":
		return
	case d.Reason == v1alpha1.ReasonAborted:
		status.Verdict = v1alpha1.VerdictInconclusive
		state.SetCondition(&status.Conditions, s.experiment.Generation, v1alpha1.ConditionObjectivesMet,
			metav1.ConditionUnknown, v1alpha1.ReasonAborted, d.Message)
		return
	}
	var rows []comparisons.Comparison
	for _, row := range s.table().Comparisons {
		if row.Primary {
			rows = append(rows, row)
		}
	}
	objectives := s.experiment.Spec.Objectives
	j := experiment.Judge(s.record, rows, s.experiment.Spec.Compare.Require, s.earlier.rows(),
		objectives != nil && objectives.NoRegression)
	status.Verdict = j.Verdict
	met := metav1.ConditionUnknown
	if j.Verdict != v1alpha1.VerdictInconclusive {
		met = state.ConditionStatus(j.Verdict == v1alpha1.VerdictPass)
	}
	state.SetCondition(&status.Conditions, s.experiment.Generation, v1alpha1.ConditionObjectivesMet,
		met, j.Reason, j.Message)
}
