package run

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// noResult is the reason for the doubt about a record of which nobody knows what was measured, and required.
const noResult = "NoResult"

// phrases are the reasons for doubt at the head of a report, where their numbers would hide what they mean.
var phrases = map[string]string{
	impact.NoLoad:                   "nothing succeeded before the fault",
	impact.BaselineTooShort:         "too little was measured before the fault",
	impact.BaselineUnsteady:         "the throughput before the fault was not steady",
	impact.TooFewSamples:            "there were too few requests",
	impact.DownBefore:               "an outage had begun before the fault",
	impact.OutageNotOver:            "new clients were not served until the end",
	impact.GeneratorStalled:         "the load generator did not always run",
	impact.GeneratorStarved:         "the load generator waited for a CPU",
	noResult:                        "the record has no result of its run",
	impact.RecoveryUnknown:          "whether the load recovered is not known",
	impact.RecordIncomplete:         "the record is not complete",
	impact.IntervalsMissing:         "a part of the record is missing",
	impact.PlanChanged:              "the load was planned to change around the fault",
	impact.CoarseRecord:             "the record is too coarse",
	impact.ShardPartlyFailed:        "one shard may have had an outage that was not recorded",
	"LoadGeneratorSaturated":        "the load generator was too slow",
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
	effectUnconfirmed:               "the effect of the fault is not confirmed",
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

const effectUnconfirmed = "EffectUnconfirmed"

// mostWords is how long a sentence at the head of a report may be.
const mostWords = 25

// headline joins a beginning with its explanation, unless that makes the sentence too long: then what follows the badge, or Doubts, explains it.
func headline(beginning, explanation string) string {
	explanation = strings.TrimSuffix(explanation, ".")
	if explanation == "" || len(strings.Fields(beginning))+len(strings.Fields(explanation)) > mostWords {
		return beginning + "."
	}
	return beginning + ": " + explanation + "."
}

// notConclusive is the head of the report of a subject whose figures are in doubt, or of which an objective could not be judged.
func notConclusive(d *report.Document) report.Prose {
	const beginning = "Not conclusive"
	own := ownDoubts(d)
	if len(own) == 0 {
		for _, o := range d.Objectives {
			if o.Of == "" && o.Judged == report.NotJudged {
				return report.Text(headline(beginning, o.Name+" could not be judged"))
			}
		}
		return report.Text(headline(beginning, d.Reason))
	}
	why := phrases[own[0].Reason]
	if why == "" {
		why, _, _ = strings.Cut(own[0].Message, ";")
	}
	if n := len(own) - 1; n > 0 {
		why += fmt.Sprintf(" (and %d other reason%s)", n, plural(n))
	}
	return report.Text(headline(beginning, why))
}

// ownDoubts are those about the subject, not about the faults on it.
func ownDoubts(d *report.Document) []report.Doubt {
	return slices.DeleteFunc(slices.Clone(d.Doubts), func(o report.Doubt) bool { return o.Of != "" })
}

// settleDoubts makes a document say the same of its doubts everywhere: beside the badge how many there are, and of no objective about doubtful figures that it is
// met or missed. doubted are the faults whose figures are in doubt.
func settleDoubts(d *report.Document, doubted map[string]bool) {
	own := len(ownDoubts(d))
	if d.Verdict == report.Inconclusive && own > 0 {
		d.Reason = fmt.Sprintf("%d reason%s not to trust the figures, under Doubts.", own, plural(own))
	}
	for i := range d.Objectives {
		o := &d.Objectives[i]
		if doubted[o.Of] || o.Of == "" && d.Verdict == report.Inconclusive && own > 0 {
			o.Judged = report.NotJudged
			if o.Message == "" {
				o.Message = o.Name + " is not judged: the figures are in doubt"
			}
		}
	}
}

// unlisted is the doubt of an inconclusive verdict whose reason is in its condition only.
func unlisted(conditions []metav1.Condition, of string) report.Doubt {
	one := report.Doubt{Reason: string(report.Inconclusive), Of: of}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet); c != nil {
		one.Message = c.Message
	}
	return one
}
