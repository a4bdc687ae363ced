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
	if known, ok := reasons[reason]; ok {
		return known.phrase
	}
	first, _, _ := strings.Cut(message, ";")
	return first
}

// subject is what a doubt is about.
type subject int

const (
	// how, and for how long, clients were seen: rates, latencies, and times between two instants. What
	// was acknowledged and is lost is lost all the same: the losses that were found are a lower bound.
	seen subject = iota + 1
	// when: to which of the faults on a load its losses belong, but not that they are
	dated
	// what happened to the servers, and whether the fault caused it: all figures
	happened
)

// Judged is an objective that was judged, by its name and unit.
type Judged struct {
	Name   string
	Unit   result.Unit
	Met    bool
	OfLoad bool // not of a fault
}

// proven reports whether an objective of that name is missed by what was found, whatever was not
// seen: acknowledged writes that are gone, or two users that each had been told that they hold a
// lock.
func proven(name string) bool {
	return name == MaxLostWrites || name == MaxLockOverlap
}

// Withstands reports whether that an objective is met or missed is certain in spite of a doubt: that
// more acknowledged writes were lost than allowed, that two users held a lock for longer, or what of a fault is judged by its bounds, which
// hold the stalls of the load generator. Against a reason that is not known nothing is.
func (o Judged) Withstands(reason string) bool {
	lost := proven(o.Name)
	switch about := reasons[reason].about; {
	case reason == impact.GeneratorStalled && !o.OfLoad && (lost || o.Unit == result.UnitSeconds):
		return true
	case lost && !o.Met:
		return about == seen || about == dated && o.OfLoad
	}
	return false
}

// reasons are the reasons for doubt: a phrase for where a sentence has to be short, as their numbers
// would hide what they mean, and what each is about.
var reasons = map[string]struct {
	phrase string
	about  subject
}{
	impact.NoLoad:                   {"hardly anything succeeded before the fault", happened},
	impact.BaselineTooShort:         {"too little was measured before the fault", seen},
	impact.BaselineUnsteady:         {"the throughput before the fault was not steady", seen},
	impact.TooFewSamples:            {"there were too few requests", seen},
	impact.DownBefore:               {"an outage had begun before the fault", happened},
	impact.OutageNotOver:            {"new clients were not served until the end", seen},
	impact.GeneratorStalled:         {"the load generator did not always run", seen},
	impact.GeneratorStarved:         {"the load generator waited for a CPU", seen},
	"NoResult":                      {"the record has no result of its run", seen},
	impact.RecoveryUnknown:          {"whether the load recovered is not known", seen},
	impact.RecordIncomplete:         {"the record is not complete", seen},
	impact.IntervalsMissing:         {"a part of the record is missing", seen},
	impact.PlanChanged:              {"the load was planned to change around the fault", seen},
	impact.CoarseRecord:             {"the record is too coarse", seen},
	impact.ShardPartlyFailed:        {"one shard may have had an outage that was not recorded", seen},
	"LoadGeneratorSaturated":        {"the load generator was too slow", seen},
	"Redirected":                    {"requests went to nodes without their keys", seen},
	"UsersQueue":                    {"the users waited for each other's connections", seen},
	"SearchUnfinished":              {"the search did not complete", seen},
	"NoRequests":                    {"no request was made in the measured time", seen},
	"StartSkew":                     {"the load pods did not start together", seen},
	"ClockUncertainty":              {"the clocks of the load pods are uncertain", dated},
	"ClockDrift":                    {"the clocks of the load pods drifted apart", dated},
	"ClockStepped":                  {"the operator's clock was set meanwhile", dated},
	"CutShort":                      {"the fault ended before its time", seen},
	"LoadEnded":                     {"the load ended too early", seen},
	"NotInjected":                   {"the fault was not injected", happened},
	"RecordOutOfReach":              {"the record of the load could not be read", seen},
	"EffectUnconfirmed":             {"the effect of the fault is not confirmed", happened},
	"TwoPrimaries":                  {"which server is the primary was not decided", happened},
	string(result.Interrupted):      {"the load was interrupted", seen},
	string(result.Failed):           {"the load did not run to its end", seen},
	v1alpha1.ReasonAborted:          {"it was aborted", seen},
	v1alpha1.ReasonStopped:          {"it was stopped", seen},
	v1alpha1.ReasonPodsLost:         {"load pods were lost", seen},
	v1alpha1.ReasonOverstayed:       {"the fault stayed for longer than asked", happened},
	v1alpha1.ReasonNotConfirmed:     {"whether the setting was in force is not known", happened},
	v1alpha1.ReasonStopConditionMet: {"the fault was ended early", seen},
}
