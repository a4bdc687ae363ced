// Package verdict evaluates the objectives of load tests and faults. It is pure: no clock, no I/O.
package verdict

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// Judgement is the outcome. Reason and Message are for a condition: Message has each doubt in a
// phrase, as it is shown in a column.
type Judgement struct {
	Verdict    v1alpha1.Verdict
	Objectives []v1alpha1.ObjectiveResult
	Reason     string
	Message    string
}

// judge combines the results of the objectives. With a doubt about the figures the verdict is
// Inconclusive, unless certain says what is a Fail all the same. Otherwise a missed objective is a
// Fail, and without one, an objective that cannot be evaluated is Inconclusive. missed is a failure
// apart from the objectives. "" = there is none.
func judge(
	objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, missed, certain string,
) Judgement {
	j := Judgement{Objectives: objectives}
	var broken, unknown, doubted []string
	if missed != "" {
		broken = append(broken, missed)
	}
	for _, o := range objectives {
		switch {
		case o.Met == nil:
			unknown = append(unknown, o.Message)
		case !*o.Met:
			broken = append(broken, o.Message)
		}
	}
	for _, d := range doubts {
		phrase := Phrase(d.Reason, d.Message)
		if !slices.Contains(doubted, phrase) {
			doubted = append(doubted, phrase)
		}
	}
	switch {
	case len(doubted) > 0 && certain != "":
		j.Verdict = v1alpha1.VerdictFail
		j.Reason = v1alpha1.ReasonObjectivesNotMet
		j.Message = certain
	case len(doubted) > 0:
		j.Verdict = v1alpha1.VerdictInconclusive
		j.Reason = v1alpha1.ReasonInconclusive
		j.Message = strings.Join(doubted, "; ")
	case len(broken) > 0:
		j.Verdict = v1alpha1.VerdictFail
		j.Reason = v1alpha1.ReasonObjectivesNotMet
		j.Message = strings.Join(broken, "; ")
	case len(unknown) > 0:
		j.Verdict = v1alpha1.VerdictInconclusive
		j.Reason = v1alpha1.ReasonInconclusive
		j.Message = strings.Join(unknown, "; ")
	case len(objectives) == 0:
		j.Verdict = v1alpha1.VerdictPass
		j.Reason = v1alpha1.ReasonSucceeded
		j.Message = "no objective was set, and nothing is in doubt"
	default:
		j.Verdict = v1alpha1.VerdictPass
		j.Reason = v1alpha1.ReasonSucceeded
		j.Message = fmt.Sprintf("%[1]d of %[1]d objectives are met", len(objectives))
	}
	return j
}

// lostTooMuch is the message of the first objective that is missed for certain, whatever the doubts:
// more acknowledged writes were lost than it allows, or two users held a lock for longer; "" = there
// is none, or it is met, not judged or in doubt.
func lostTooMuch(objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, ofLoad bool) string {
	for _, o := range objectives {
		if !proven(o.Name) || o.Met == nil || *o.Met {
			continue
		}
		lost := Judged{Name: o.Name, OfLoad: ofLoad}
		if !slices.ContainsFunc(doubts, func(d impact.Doubt) bool { return !lost.Withstands(d.Reason) }) {
			return o.Message
		}
	}
	return ""
}

// beside adds to a Pass what no objective is about: acknowledged writes that were lost. lost is nil
// if that is unknown.
func (j Judgement) beside(lost *result.Count) Judgement {
	if j.Verdict == v1alpha1.VerdictPass {
		j.Message += Unjudged(j.Objectives, lost)
	}
	return j
}

// besideLocks does the same for locks that two users held.
func (j Judgement) besideLocks(g *result.Guarantees) Judgement {
	if j.Verdict == v1alpha1.VerdictPass && g != nil && g.Lock != nil && g.Lock.Overlaps > 0 &&
		!slices.ContainsFunc(j.Objectives, func(o v1alpha1.ObjectiveResult) bool { return o.Name == MaxLockOverlap }) {
		j.Message += fmt.Sprintf("; %d times did two users hold the same lock, which no objective judged: see objectives.%s",
			g.Lock.Overlaps, MaxLockOverlap)
	}
	return j
}

// Unjudged says that acknowledged writes were lost, and that no objective judges them; it is empty
// where one does, or none was lost.
func Unjudged(objectives []v1alpha1.ObjectiveResult, lost *result.Count) string {
	if lost == nil || lost.AtMost == 0 ||
		slices.ContainsFunc(objectives, func(o v1alpha1.ObjectiveResult) bool {
			return o.Name == MaxLostWrites
		}) {
		return ""
	}
	switch n, exact := lost.Exact(); {
	case exact:
		return fmt.Sprintf(
			"; %d acknowledged writes were lost, which no objective of it judged: see objectives.%s", n,
			MaxLostWrites)
	case lost.AtLeast > 0:
		return fmt.Sprintf(
			"; %d to %d acknowledged writes were lost, which no objective of it judged: see objectives.%s",
			lost.AtLeast, lost.AtMost, MaxLostWrites)
	}
	return fmt.Sprintf(
		"; up to %d acknowledged writes may have been lost, which no objective of it judged: see objectives.%s",
		lost.AtMost, MaxLostWrites)
}

// set returns the results of the objectives that are set.
func set(results ...*result.Objective) []result.Objective {
	var out []result.Objective
	for _, r := range slices.DeleteFunc(results, func(r *result.Objective) bool { return r == nil }) {
		out = append(out, *r)
	}
	return out
}

// units are the units of a status, for those of a result.
var units = map[result.Unit]v1alpha1.Unit{
	result.UnitCount:     v1alpha1.UnitCount,
	result.UnitShare:     v1alpha1.UnitShare,
	result.UnitSeconds:   v1alpha1.UnitSeconds,
	result.UnitPerSecond: v1alpha1.UnitPerSecond,
}

// InStatus converts the results of objectives to the form of a status.
func InStatus(objectives []result.Objective) []v1alpha1.ObjectiveResult {
	var out []v1alpha1.ObjectiveResult
	for _, o := range objectives {
		out = append(out, v1alpha1.ObjectiveResult{
			Name:    o.Name,
			Unit:    units[o.Unit],
			Limit:   decimal(o.Unit, &o.Limit),
			Actual:  decimal(o.Unit, o.Actual),
			AtLeast: decimal(o.Unit, o.AtLeast),
			AtMost:  decimal(o.Unit, o.AtMost),
			Met:     o.Met,
			Message: o.Message,
		})
	}
	return out
}

// decimal is a figure in the unit of a status; "" for nil.
func decimal(unit result.Unit, x *float64) v1alpha1.Decimal {
	switch {
	case x == nil:
		return ""
	case unit == result.UnitSeconds:
		d := time.Duration(math.Round(*x * float64(time.Second)))
		return v1alpha1.DurationOf(d).InSeconds()
	case unit == result.UnitCount:
		return v1alpha1.Decimal(strconv.FormatFloat(*x, 'f', 0, 64))
	}
	return v1alpha1.DecimalOf(*x)
}
