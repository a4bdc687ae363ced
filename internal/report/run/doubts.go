package run

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

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

// noResult is the reason for the doubt about a record of which nobody knows what was measured, and
// required.
const noResult = "NoResult"

const effectUnconfirmed = "EffectUnconfirmed"

// unlisted is the doubt of an inconclusive verdict whose reason is in its condition only.
func unlisted(conditions []metav1.Condition, of string) report.Doubt {
	one := report.Doubt{Reason: string(report.Inconclusive), Of: of}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet)
	if c != nil {
		one.Message = c.Message
	}
	return one
}

// doubtsSection lists the reasons for doubt: those that were found, and of a single fault those
// that were looked for, with what was found and its limit.
func doubtsSection(s *subject.Run, d *report.Document, f *subject.Fault) *report.Section {
	sec := &report.Section{
		ID:      "doubts",
		Title:   "Doubts",
		Folded:  true,
		Derived: true,
		Open:    len(d.Doubts) > 0,
		Finding: report.Text("no reason not to trust the figures was found"),
		Note:    "What these figures cannot say: your client library may wait longer than this client, which tries again after 1 to 50 ms.",
	}
	if n := len(d.Doubts); n > 0 {
		sec.Finding = report.Text(fmt.Sprintf("%d reason%s not to trust the figures", n,
			report.Plural(n)))
	} else if d.Verdict == "" {
		sec.Finding = report.Text("they are looked for at the end")
	}
	if f == nil && len(s.Faults) == 1 {
		f = s.Faults[0]
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Doubt"},
			{Title: "Of"},
			{Title: "Looked at, or why", Soft: true},
			{Title: "Found", Number: true},
			{Title: "Limit", Number: true, Soft: true},
			{Title: "A doubt?"},
		},
	}
	for _, one := range d.Doubts {
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: one.Reason},
				{Text: one.Of},
				{Text: one.Message},
				{},
				{},
				{Text: "yes", Judged: report.NotJudged},
			},
		})
	}
	for _, c := range passedChecks(s, f, d) {
		unit := map[impact.CheckUnit]result.Unit{
			impact.CheckSeconds: result.UnitSeconds,
			impact.CheckCount:   result.UnitCount,
			impact.CheckShare:   result.UnitShare,
			impact.CheckRate:    result.UnitPerSecond,
		}[c.Unit]
		limit := "at most " + report.InUnit(unit, c.Limit)
		if c.Least && c.Limit == 0 {
			limit = "above 0"
		} else if c.Least {
			limit = "at least " + report.InUnit(unit, c.Limit)
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: c.Reason},
				{},
				{Text: c.What},
				{Text: report.InUnit(unit, c.Found), Value: new(c.Found), Unit: unit},
				{Text: limit},
				{Text: "no", Judged: report.Met},
			},
		})
	}
	if len(t.Rows) > 0 {
		sec.Tables = []report.Table{t.WithoutEmptyColumns()}
	}
	return sec
}

// passedChecks are those that were no reason for doubt, by the record.
func passedChecks(s *subject.Run, f *subject.Fault, d *report.Document) (list []impact.Check) {
	if f == nil || s.In.Series == nil || s.Test == nil || f.Status.SettledTime == nil {
		return nil
	}
	at := impact.Fault{At: f.At, Deadline: f.Spec.RecoveryDeadline.Duration}
	for _, c := range impact.Checks(s.In.Series, at, impact.Options{
		MeasuredFrom: s.From,
		Planned:      children.Planned(&s.Test.Spec),
	}) {
		if c.Passed() &&
			!slices.ContainsFunc(d.Doubts, func(o report.Doubt) bool { return o.Reason == c.Reason }) {
			list = append(list, c)
		}
	}
	return list
}
