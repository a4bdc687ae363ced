package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
)

var (
	experimentInfo = define(Definition{
		Name:   "redquake_experiment_info",
		Kind:   Gauge,
		Labels: []string{labelNamespace, labelExperiment, labelState, labelVerdict},
		Help: "1 for each RedisExperiment, with its state: Pending, Running, Suspended, Complete or " +
			"Failed. The runs of a schedule are experiments, too.",
		Example: `count by (state) (max by (namespace, experiment, state) (redquake_experiment_info))`,
	})
	experimentRuns = define(Definition{
		Name:   "redquake_experiment_progress_runs",
		Kind:   Gauge,
		Labels: []string{labelNamespace, labelExperiment, labelState},
		Help:   "Runs of the cells of a RedisExperiment: Planned, Finished, and of those Failed and Inconclusive.",
		Example: `max by (namespace, experiment) (redquake_experiment_progress_runs{state="Finished"}) / max by ` +
			`(namespace, experiment) (redquake_experiment_progress_runs{state="Planned"})`,
	})
	experimentComparisons = define(Definition{
		Name:    "redquake_experiment_comparisons",
		Kind:    Gauge,
		Labels:  []string{labelNamespace, labelExperiment, labelVerdict},
		Help:    "Comparisons of the cells of a complete RedisExperiment with their baselines, by what they say.",
		Example: `max by (namespace, experiment) (redquake_experiment_comparisons{verdict="Worse"}) > 0`,
	})
	experimentRegressed = define(Definition{
		Name:   "redquake_experiment_regressed",
		Kind:   Gauge,
		Labels: []string{labelNamespace, labelExperiment},
		Help: "Whether a figure of a RedisExperiment is worse than in the run of spec.compareTo (1) " +
			"or not (0); absent while that is unknown, and for runs of a schedule.",
		Example: `max by (namespace, experiment) (redquake_experiment_regressed) == 1`,
	})
)

func collectExperiments(out chan<- prometheus.Metric, all []v1alpha1.RedisExperiment) {
	for i := range all {
		e := &all[i]
		status := &e.Status
		state := stateOf(status.Conditions, status.StartTime != nil)
		experimentInfo.set(out, 1, e.Namespace, e.Name, state, string(status.Verdict))
		if p := status.Progress; p != nil {
			for state, n := range map[string]int32{
				"Planned":      p.Runs,
				"Finished":     p.Finished,
				"Failed":       p.Failed,
				"Inconclusive": p.Inconclusive,
			} {
				experimentRuns.set(out, float64(n), e.Namespace, e.Name, state)
			}
		}
		collectComparisons(out, e)
		if children.ScheduleOf(e) == nil { // that of a run is its schedule's
			collectRegressed(out, experimentRegressed, e.Namespace, e.Name, status.Conditions)
		}
	}
}

// collectRegressed sends whether a figure is worse than before, unless that is unknown.
func collectRegressed(
	out chan<- prometheus.Metric, as *family, namespace, name string, conditions []metav1.Condition,
) {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionRegressed)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return
	}
	regressed := 0.0
	if c.Status == metav1.ConditionTrue {
		regressed = 1
	}
	as.set(out, regressed, namespace, name)
}

// collectComparisons sends how many comparisons say what, once the experiment has verdicts.
func collectComparisons(out chan<- prometheus.Metric, e *v1alpha1.RedisExperiment) {
	says := map[v1alpha1.ComparisonVerdict]int{}
	for _, c := range e.Status.Comparison {
		if c.Verdict != "" {
			says[c.Verdict]++
		}
	}
	if len(says) == 0 {
		return
	}
	for _, verdict := range []v1alpha1.ComparisonVerdict{
		v1alpha1.ComparisonBetter,
		v1alpha1.ComparisonWorse, v1alpha1.ComparisonSame, v1alpha1.ComparisonInconclusive,
	} {
		experimentComparisons.set(out, float64(says[verdict]), e.Namespace, e.Name, string(verdict))
	}
}

// stateOf is where a load test or an experiment stands.
func stateOf(conditions []metav1.Condition, started bool) string {
	if ended := endedOf(conditions); ended != "" {
		return ended
	}
	if started {
		return stateRunning
	}
	return statePending
}

// The values of the label state of objects.
const (
	statePending   = "Pending"
	stateRunning   = "Running"
	stateSuspended = "Suspended"
	stateComplete  = "Complete"
	stateFailed    = "Failed"
)

// endedOf is how an object has ended, or that it is suspended; "" = it acts.
func endedOf(conditions []metav1.Condition) string {
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete):
		return stateComplete
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed):
		return stateFailed
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionSuspended):
		return stateSuspended
	}
	return ""
}
