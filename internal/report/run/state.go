package run

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

func faultState(f *subject.Fault, d *report.Document) {
	status := &f.Status
	var why string
	d.State, why = subject.StateOf(status.Conditions,
		status.StartTime != nil || status.InjectedAt != nil)
	d.Verdict = report.Verdict(status.Verdict)
	d.Time = time.Time{}
	if status.InjectedAt != nil {
		d.Time = status.InjectedAt.UTC()
	}
	d.Reason = why
	if d.Verdict != "" {
		d.Reason = judgedBecause(f, d, why)
	}
}

// judgedBecause is what stands beside the verdict on a fault: why, unless the verdict tells more.
func judgedBecause(f *subject.Fault, d *report.Document, why string) string {
	status := &f.Status
	met, judged := 0, len(d.Objectives)
	for _, o := range status.Objectives {
		judged++
		if o.Met != nil && *o.Met {
			met++
		}
	}
	unjudged := verdict.Unjudged(status.Objectives, f.Result.LostWrites())
	missed := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
	switch n := len(f.Result.Doubts); {
	case d.Verdict == report.Pass && judged > 0 && n > 0:
		return "All " + report.Count(judged) + " objectives are met, whatever the doubt" +
			report.Plural(n) + " below" + unjudged + "."
	case d.Verdict == report.Pass && judged > 0:
		return "All " + report.Count(judged) + " objectives are met. " + undoubted(f) + unjudged +
			"."
	case d.Verdict == report.Pass:
		return "It has no objectives. " + undoubted(f) + unjudged + "."
	case d.Verdict == report.Fail && n > 0 && missed != nil:
		return "Whatever the doubt" + report.Plural(n) + " below: " + missed.Message + "."
	case why == "":
		return report.Count(met) + " of " + report.Count(judged) + " objectives are met."
	}
	return why
}

// undoubted says that nothing makes the figures doubtful; where the load generator limited the
// load, as the report says below, that this is in their bounds.
func undoubted(f *subject.Fault) string {
	b := f.Run.Load.Bottleneck
	if b != nil && b.Component == string(bottleneck.LoadGenerator) {
		return "The load generator limited the load, which the bounds of the figures contain"
	}
	return "No reason for doubt was found"
}

func loadState(s *subject.Run, d *report.Document) {
	switch {
	case s.Test != nil:
		d.State, d.Reason = subject.StateOf(s.Test.Status.Conditions, !s.Start.IsZero())
		c := meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionComplete)
		if c != nil && s.NeverBegan() && d.Reason == "" {
			d.Reason = c.Message // why it was ended before
		}
		d.Verdict = report.Verdict(s.Test.Status.Verdict)
		c = meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionObjectivesMet)
		if c != nil && d.Verdict != "" {
			d.Reason = c.Message
		}
	case s.In.Load != nil:
		d.Verdict, d.Reason = report.Verdict(s.Load.Verdict), s.Load.Why
		if s.Load.Outcome == result.Failed {
			d.State = report.Failed
		}
	case !s.In.Series.Ended():
		d.State = report.Running
	default:
		d.Verdict = report.Inconclusive // see doubts
	}
}
