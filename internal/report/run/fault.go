package run

import (
	"slices"
	"time"

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
	if d.Verdict == "" {
		return
	}
	met, judged := 0, len(d.Objectives)
	for _, o := range status.Objectives {
		judged++
		if o.Met != nil && *o.Met {
			met++
		}
	}
	unjudged := verdict.Unjudged(status.Objectives, f.Result.LostWrites())
	switch n := len(f.Result.Doubts); {
	case d.Verdict == report.Pass && judged > 0 && n > 0:
		d.Reason = "All " + report.Count(judged) + " objectives are met, whatever the doubt" +
			report.Plural(n) + " below" + unjudged + "."
	case d.Verdict == report.Pass && judged > 0:
		d.Reason = "All " + report.Count(judged) + " objectives are met. " + undoubted(f) + unjudged +
			"."
	case d.Verdict == report.Pass:
		d.Reason = "It has no objectives. " + undoubted(f) + unjudged + "."
	case why == "":
		d.Reason = report.Count(met) + " of " + report.Count(judged) + " objectives are met."
	}
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

func faultDoubts(f *subject.Fault, of string) (list []report.Doubt) {
	for _, d := range f.Result.Doubts {
		list = append(list, report.Doubt{
			Reason:  d.Reason,
			Of:      of,
			Message: d.Message,
		})
	}
	if f.Status.Effect == v1alpha1.EffectNotObserved ||
		f.Status.Effect == v1alpha1.EffectInconclusive {
		list = append(list, report.Doubt{
			Reason:  effectUnconfirmed,
			Of:      of,
			Message: "effect " + string(f.Status.Effect) + ": " + f.Status.EffectEvidence,
		})
	}
	inconclusive := slices.ContainsFunc(f.Result.Objectives, func(o result.Objective) bool {
		return o.Met == nil
	})
	if len(list) == 0 && f.Status.Verdict == v1alpha1.VerdictInconclusive && !inconclusive {
		list = append(list, unlisted(f.Status.Conditions, of))
	}
	return list
}

// doubts are those about the load, and about each fault.
func doubts(s *subject.Run) (list []report.Doubt) {
	switch {
	case s.In.Load != nil:
		for _, d := range s.In.Load.Doubts {
			list = append(list, report.Doubt{Reason: d.Reason, Message: d.Message})
		}
	case s.Test != nil:
		for _, d := range s.Test.Status.Doubts {
			list = append(list, report.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	if s.Test != nil && len(list) == 0 && s.Test.Status.Verdict == v1alpha1.VerdictInconclusive {
		if !slices.ContainsFunc(s.Test.Status.Objectives, func(o v1alpha1.ObjectiveResult) bool {
			return o.Met == nil
		}) {
			list = append(list, unlisted(s.Test.Status.Conditions, ""))
		}
	}
	if s.Test == nil && s.In.Load == nil && s.In.Series != nil && s.In.Series.Ended() {
		list = append(list, report.Doubt{
			Reason:  noResult,
			Message: "the record has no result of its run: the figures are of the whole time, with ramp-up and warm-up, and nobody judged them",
		})
	}
	for _, f := range s.Faults {
		list = append(list, faultDoubts(f, f.Name)...)
	}
	return list
}
