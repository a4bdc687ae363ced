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
// Inconclusive. Otherwise a missed objective is a Fail, and without one, an objective that cannot
// be evaluated is Inconclusive. missed is a failure apart from the objectives, "" = none.
func judge(objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, missed string) Judgement {
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

// beside adds to a Pass what no objective is about: acknowledged writes that were lost. lost is nil
// if that is unknown.
func (j Judgement) beside(lost *result.Count) Judgement {
	if j.Verdict == v1alpha1.VerdictPass {
		j.Message += Unjudged(j.Objectives, lost)
	}
	return j
}

// Unjudged says that acknowledged writes were lost, and that no objective judges them; it is empty
// where one does, or none was lost.
func Unjudged(objectives []v1alpha1.ObjectiveResult, lost *result.Count) string {
	if lost == nil || lost.AtMost == 0 ||
		slices.ContainsFunc(objectives, func(o v1alpha1.ObjectiveResult) bool {
			return o.Name == maxLostWrites
		}) {
		return ""
	}
	switch n, exact := lost.Exact(); {
	case exact:
		return fmt.Sprintf(
			"; %d acknowledged writes were lost, which no objective of it judged: see objectives.%s", n,
			maxLostWrites)
	case lost.AtLeast > 0:
		return fmt.Sprintf(
			"; %d to %d acknowledged writes were lost, which no objective of it judged: see objectives.%s",
			lost.AtLeast, lost.AtMost, maxLostWrites)
	}
	return fmt.Sprintf(
		"; up to %d acknowledged writes may have been lost, which no objective of it judged: see objectives.%s",
		lost.AtMost, maxLostWrites)
}

// set returns the results of the objectives that are set.
func set(results ...*result.Objective) []result.Objective {
	var out []result.Objective
	for _, r := range slices.DeleteFunc(results, func(r *result.Objective) bool { return r == nil }) {
		out = append(out, *r)
	}
	return out
}

// Phrase is a doubt in a few words, for conditions, columns and the head of a report. Its numbers
// are in its message, which the lists of doubts have. A reason that is not known, such as that of
// the condition of a setting, has the first part of its message.
func Phrase(reason, message string) string {
	if phrase := phrases[reason]; phrase != "" {
		return phrase
	}
	first, _, _ := strings.Cut(message, ";")
	return first
}

// phrases are the reasons for doubt where a sentence has to be short: their numbers would hide what
// they mean.
var phrases = map[string]string{
	impact.NoLoad:                   "hardly anything succeeded before the fault",
	impact.BaselineTooShort:         "too little was measured before the fault",
	impact.BaselineUnsteady:         "the throughput before the fault was not steady",
	impact.TooFewSamples:            "there were too few requests",
	impact.DownBefore:               "an outage had begun before the fault",
	impact.OutageNotOver:            "new clients were not served until the end",
	impact.GeneratorStalled:         "the load generator did not always run",
	impact.GeneratorStarved:         "the load generator waited for a CPU",
	"NoResult":                      "the record has no result of its run",
	impact.RecoveryUnknown:          "whether the load recovered is not known",
	impact.RecordIncomplete:         "the record is not complete",
	impact.IntervalsMissing:         "a part of the record is missing",
	impact.PlanChanged:              "the load was planned to change around the fault",
	impact.CoarseRecord:             "the record is too coarse",
	impact.ShardPartlyFailed:        "one shard may have had an outage that was not recorded",
	"LoadGeneratorSaturated":        "the load generator was too slow",
	"Redirected":                    "requests went to nodes without their keys",
	"UsersQueue":                    "the users waited for each other's connections",
	"SearchUnfinished":              "the search did not complete",
	"NoRequests":                    "no request was made in the measured time",
	"StartSkew":                     "the load pods did not start together",
	"ClockUncertainty":              "the clocks of the load pods are uncertain",
	"ClockDrift":                    "the clocks of the load pods drifted apart",
	"ClockStepped":                  "the operator's clock was set meanwhile",
	"CutShort":                      "the fault ended before its time",
	"LoadEnded":                     "the load ended too early",
	"NotInjected":                   "the fault was not injected",
	"RecordOutOfReach":              "the record of the load could not be read",
	"EffectUnconfirmed":             "the effect of the fault is not confirmed",
	"TwoPrimaries":                  "which server is the primary was not decided",
	string(result.Interrupted):      "the load was interrupted",
	string(result.Failed):           "the load did not run to its end",
	v1alpha1.ReasonAborted:          "it was aborted",
	v1alpha1.ReasonStopped:          "it was stopped",
	v1alpha1.ReasonPodsLost:         "load pods were lost",
	v1alpha1.ReasonOverstayed:       "the fault stayed for longer than asked",
	v1alpha1.ReasonNotConfirmed:     "whether the setting was in force is not known",
	v1alpha1.ReasonStopConditionMet: "the fault was ended early",
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
