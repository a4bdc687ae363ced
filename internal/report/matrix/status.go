package matrix

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/version"
)

// Status makes the report of an experiment of which only the object is at hand, and not its record:
// how far it has come, its verdict, and what is worse.
func Status(e *v1alpha1.RedisExperiment) *report.Document {
	d := &report.Document{
		Version:   report.Version,
		Kind:      report.Experiment,
		Namespace: e.Namespace,
		Name:      e.Name,
		Redquake:  version.Version,
		State:     report.Pending,
		Verdict:   report.Verdict(e.Status.Verdict),
	}
	reason := v1alpha1.ConditionComplete
	if p := e.Status.Progress; p != nil && p.Finished > 0 {
		d.State = report.Running
		d.Finding = report.Text(fmt.Sprintf("%d of %d runs have ended (%d inconclusive, %d failed).",
			p.Finished, p.Runs, p.Inconclusive, p.Failed))
	}
	switch {
	case meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionFailed):
		d.State = report.Failed
	case meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionComplete):
		d.State = report.Complete
	}
	if d.Verdict != "" {
		reason = v1alpha1.ConditionObjectivesMet
	}
	c := meta.FindStatusCondition(e.Status.Conditions, reason)
	if c != nil {
		d.Reason = c.Message
	}
	t := report.Table{Columns: []report.Column{{Title: "Verdict"}, {Title: "Comparison"}}}
	for i := range e.Status.Comparison {
		c := &e.Status.Comparison[i]
		if c.Verdict == v1alpha1.ComparisonWorse || c.Verdict == v1alpha1.ComparisonRegressed {
			t.Rows = append(t.Rows, report.Row{
				Cells: []report.Cell{{Text: string(c.Verdict)}, {Text: c.Message}},
			})
		}
	}
	if len(t.Rows) > 0 {
		d.Sections = []report.Section{{
			ID:     "worse",
			Title:  "What is worse",
			Tables: []report.Table{t},
		}}
	}
	d.Notes = slices.Concat(e.Status.Warnings, e.Status.Notes)
	return d
}
