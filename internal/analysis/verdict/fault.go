package verdict

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Fault evaluates the objectives of a settled fault, except the lost writes, which are known only
// at the end of the load, and sets them in its result, too.
func Fault(objectives *v1alpha1.FaultObjectives, r *result.Fault) []v1alpha1.ObjectiveResult {
	if objectives == nil {
		return nil
	}
	r.Objectives = set(
		outage(objectives.MaxOutage, r.Outage()),
		recovery(objectives.MaxRecoveryTime, r),
		dip(objectives.MaxTPSDip, r),
		countWithin("maxErrors", objectives.MaxErrors, &result.Count{
			AtLeast: r.Errors,
			AtMost:  r.Errors,
		}),
	)
	return InStatus(r.Objectives)
}

// MaxLostWrites is the objective of that name.
const MaxLostWrites = "maxLostWrites"

// Losses evaluates the objective of the lost writes; losses is nil if they are unknown.
func Losses(objectives *v1alpha1.FaultObjectives, losses *result.Losses) []result.Objective {
	if objectives == nil {
		return nil
	}
	if losses == nil {
		return set(countWithin(MaxLostWrites, objectives.MaxLostWrites, nil))
	}
	return set(countWithin(MaxLostWrites, objectives.MaxLostWrites, &losses.Count))
}

// Missed is a failure of a fault apart from its objectives, such as a missed recovery deadline. The
// zero value is none.
type Missed struct {
	Message string
	Certain bool // whatever the doubts about the figures
}

// Conclude returns the verdict of a fault from its objectives and the doubts about its figures.
// losses is nil if they are unknown.
func Conclude(
	objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, missed Missed, losses *result.Losses,
) Judgement {
	certain := lostTooMuch(objectives, doubts, false)
	if missed.Certain {
		certain = missed.Message
	}
	if withinBounds(objectives) {
		doubts = slices.DeleteFunc(slices.Clone(doubts), func(d impact.Doubt) bool {
			return d.Reason == impact.GeneratorStalled
		})
	}
	var lost *result.Count
	if losses != nil {
		lost = &losses.Count
	}
	return judge(objectives, doubts, missed.Message, certain).beside(lost)
}

// withinBounds reports whether stalls of the load generator cannot change the outcome, as they are in the
// bounds: an objective is missed whatever they hid, or all are judged, and by figures that do not
// depend on them. They may have caused a dip, and prevented errors.
func withinBounds(objectives []v1alpha1.ObjectiveResult) bool {
	judged := 0
	for _, o := range objectives {
		inSeconds := o.Unit == v1alpha1.UnitSeconds && o.Actual != ""
		switch {
		case inSeconds && o.Met != nil && !*o.Met:
			return true
		case o.Met != nil && (inSeconds || o.Name == MaxLostWrites):
			judged++
		}
	}
	return judged > 0 && judged == len(objectives)
}

// outage evaluates the outage. One that was not seen may have been too short for the load.
func outage(limit *metav1.Duration, longest impact.Outage) *result.Objective {
	o := atMost("maxOutage", limit, longest.Bounded, true)
	if o != nil && o.Met == nil && longest.Value == 0 {
		o.Message += ": one so short goes unseen between two successes; raise the rate of the load, or spec.probe.rate of the load test"
	}
	switch {
	case o == nil || o.Message == "":
	case longest.Of == impact.Shard:
		o.Message += fmt.Sprintf(" (Shard %d)", longest.Shard)
	case longest.Of != impact.Load:
		o.Message += " (" + longest.Of + ")"
	}
	return o
}

// dip evaluates the deepest of the dips of the load, its reads and its writes.
func dip(limit *string, r *result.Fault) *result.Objective {
	deepest := r.Dip()
	o := share("maxTPSDip", limit, exactly(deepest.Value), true)
	if o != nil && o.Message != "" && deepest.Of != impact.All {
		o.Message += " (" + deepest.Of + ")"
	}
	return o
}

// recovery evaluates the time to recovery. A load that did not recover before the recovery deadline
// misses every limit; one of which that is not known, those that it would have missed even so.
func recovery(limit *metav1.Duration, r *result.Fault) *result.Objective {
	took, recovered := r.Recovery()
	if recovered || limit == nil {
		return atMost("maxRecoveryTime", limit, took, true)
	}
	least := r.RecoveryAtLeast
	if least != nil && time.Duration(*least) <= limit.Duration {
		return &result.Objective{
			Name:  "maxRecoveryTime",
			Unit:  result.UnitSeconds,
			Limit: limit.Seconds(),
			Message: fmt.Sprintf(
				"maxRecoveryTime: it is not known whether the load recovered, at the earliest after %s, "+
					"limit %s", format.Duration(time.Duration(*least)), format.Duration(limit.Duration)),
		}
	}
	return &result.Objective{
		Name:  "maxRecoveryTime",
		Unit:  result.UnitSeconds,
		Limit: limit.Seconds(),
		Met:   new(false),
		Message: fmt.Sprintf("maxRecoveryTime: no recovery was seen, limit %s",
			format.Duration(limit.Duration)),
	}
}
