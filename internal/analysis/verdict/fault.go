package verdict

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Fault judges the objectives of a fault that can be judged as soon as it has settled: all but the lost writes.
func Fault(objectives *v1alpha1.FaultObjectives, r *result.Fault) []v1alpha1.ObjectiveResult {
	if objectives == nil {
		return nil
	}
	return set(
		atMost("maxOutage", objectives.MaxOutage, r.WorstOutage(), true),
		recovery(objectives.MaxRecoveryTime, r),
		share("maxTPSDip", objectives.MaxTPSDip, r.Dip, true),
		count("maxErrors", objectives.MaxErrors, r.Errors, true),
	)
}

// Losses judges the objective of the lost writes; losses is nil where they are not known.
func Losses(objectives *v1alpha1.FaultObjectives, losses *result.Losses) []v1alpha1.ObjectiveResult {
	if objectives == nil {
		return nil
	}
	if losses == nil {
		return set(count("maxLostWrites", objectives.MaxLostWrites, 0, false))
	}
	return set(count("maxLostWrites", objectives.MaxLostWrites, losses.Count, true))
}

// Conclude makes the verdict of a fault from its objectives and the doubts about its figures. missed is what was missed beside the objectives,
// such as the recovery deadline; "" = nothing.
func Conclude(objectives []v1alpha1.ObjectiveResult, doubts []impact.Doubt, missed string) Judgement {
	return judge(objectives, doubts, missed)
}

// recovery judges the time to recovery. One that did not come in time for the recovery deadline missed every limit.
func recovery(limit *metav1.Duration, r *result.Fault) *v1alpha1.ObjectiveResult {
	took, recovered := r.Recovery()
	if recovered || limit == nil {
		return atMost("maxRecoveryTime", limit, took, true)
	}
	return &v1alpha1.ObjectiveResult{
		Name: "maxRecoveryTime", Unit: v1alpha1.UnitMicroseconds, Limit: micros(limit.Duration), Met: new(false),
		Message: fmt.Sprintf("maxRecoveryTime: no recovery was seen, limit %s", format.Duration(limit.Duration)),
	}
}
