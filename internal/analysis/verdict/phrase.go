package verdict

import (
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

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
