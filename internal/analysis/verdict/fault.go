package verdict

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Fault evaluates the objectives of a settled fault, except the lost writes, which are known only at the end of the load.
func Fault(objectives *v1alpha1.FaultObjectives, r *result.Fault) []v1alpha1.ObjectiveResult {
	if objectives == nil {
		return nil
	}
	return inStatus(set(
		atMost("maxOutage", objectives.MaxOutage, r.WorstOutage(), true),
		recovery(objectives.MaxRecoveryTime, r),
		dip(objectives.MaxTPSDip, r),
		countWithin("maxErrors", objectives.MaxErrors, &result.Count{AtLeast: r.Errors, AtMost: r.Errors}),
	))
}

// Losses evaluates the objective of the lost writes; losses is nil if they are unknown.
func Losses(objectives *v1alpha1.FaultObjectives, losses *result.Losses) []v1alpha1.ObjectiveResult {
	if objectives == nil {
		return nil
	}
	if losses == nil {
		return inStatus(set(countWithin("maxLostWrites", objectives.MaxLostWrites, nil)))
	}
	return inStatus(set(countWithin("maxLostWrites", objectives.MaxLostWrites, &losses.Count)))
}

// Conclude returns the verdict of a fault from its objectives and the doubts about its figures. missed is a failure apart from the objectives,
// such as a missed recovery deadline; "" = none.
func Conclude(objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, missed string) Judgement {
	return judge(objectives, doubts, missed)
}

// dip evaluates the deepest of the dips of the load, its reads and its writes.
func dip(limit *string, r *result.Fault) *result.Objective {
	deepest, of := r.WorstDip()
	o := share("maxTPSDip", limit, exactly(deepest), true)
	if o != nil && o.Message != "" && of != "" {
		o.Message += " (" + of + ")"
	}
	return o
}

// recovery evaluates the time to recovery. A load that did not recover before the recovery deadline misses every limit.
func recovery(limit *metav1.Duration, r *result.Fault) *result.Objective {
	took, recovered := r.Recovery()
	if recovered || limit == nil {
		return atMost("maxRecoveryTime", limit, took, true)
	}
	return &result.Objective{
		Name: "maxRecoveryTime", Unit: result.UnitSeconds, Limit: limit.Seconds(), Met: new(false),
		Message: fmt.Sprintf("maxRecoveryTime: no recovery was seen, limit %s", format.Duration(limit.Duration)),
	}
}
