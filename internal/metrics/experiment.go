package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

var (
	experimentInfo = define(Definition{
		Name: "redquake_experiment_info", Kind: Gauge, Labels: []string{labelNamespace, labelExperiment, labelState, labelVerdict},
		Help:    "1 for each RedisExperiment, with its state: Pending, Running, Suspended, Complete or Failed; a schedule is Running. The runs of a schedule are experiments, too.",
		Example: `count by (state) (max by (namespace, experiment, state) (redquake_experiment_info))`,
	})
	experimentRuns = define(Definition{
		Name: "redquake_experiment_progress_runs", Kind: Gauge, Labels: []string{labelNamespace, labelExperiment, labelState},
		Help:    "Runs of the cells of a RedisExperiment: Planned, Finished, and of those Failed and Inconclusive.",
		Example: `max by (namespace, experiment) (redquake_experiment_progress_runs{state="Finished"}) / max by (namespace, experiment) (redquake_experiment_progress_runs{state="Planned"})`,
	})
	experimentComparisons = define(Definition{
		Name: "redquake_experiment_comparisons", Kind: Gauge, Labels: []string{labelNamespace, labelExperiment, labelVerdict},
		Help:    "Comparisons of the cells of a complete RedisExperiment with their baselines, by what they say.",
		Example: `max by (namespace, experiment) (redquake_experiment_comparisons{verdict="Worse"}) > 0`,
	})
	experimentRegressed = define(Definition{
		Name: "redquake_experiment_regressed", Kind: Gauge, Labels: []string{labelNamespace, labelExperiment},
		Help:    "Whether a figure of a RedisExperiment is worse than in earlier runs (1) or not (0); absent while that is unknown. Of a schedule: now.",
		Example: `max by (namespace, experiment) (redquake_experiment_regressed) == 1`,
	})
	scheduleRunsTotal = define(Definition{
		Name: "redquake_experiment_runs_total", Kind: Counter, Labels: []string{labelNamespace, labelExperiment, labelVerdict},
		Help:    "Runs of a RedisExperiment with a schedule that have ended, since this process has started, by verdict.",
		Example: `sum by (namespace, experiment, verdict) (increase(redquake_experiment_runs_total[1d]))`,
	})
)

// scheduleRuns counts the runs of one schedule by verdict.
type scheduleRuns struct {
	of     types.UID
	counts map[string]uint64
}

// RunRecorded counts a run of a schedule. Call it once the run is part of the stored history. verdict is empty if it could not complete.
func (m *Metrics) RunRecorded(schedule *v1alpha1.RedisExperiment, verdict v1alpha1.Verdict) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := types.NamespacedName{Namespace: schedule.Namespace, Name: schedule.Name}
	runs := m.runs[key]
	if runs.of != schedule.UID {
		runs = scheduleRuns{of: schedule.UID, counts: map[string]uint64{}}
		m.runs[key] = runs
	}
	runs.counts[verdictOf(verdict)]++
}

// ForgetExperiment frees what is kept of an experiment that was deleted.
func (m *Metrics) ForgetExperiment(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, key)
}

func (m *Metrics) collectExperiments(out chan<- prometheus.Metric, all []v1alpha1.RedisExperiment) {
	for i := range all {
		e := &all[i]
		status := &e.Status
		state := stateOf(status.Conditions, status.StartTime != nil || e.Spec.Schedule != "")
		experimentInfo.set(out, 1, e.Namespace, e.Name, state, string(status.Verdict))
		if p := status.Progress; p != nil {
			for state, n := range map[string]int32{"Planned": p.Runs, "Finished": p.Finished, "Failed": p.Failed, "Inconclusive": p.Inconclusive} {
				experimentRuns.set(out, float64(n), e.Namespace, e.Name, state)
			}
		}
		collectComparisons(out, e)
		if e.Spec.Schedule != "" {
			m.collectRuns(out, e)
		}
		// That of a run is its schedule's.
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRegressed); c != nil && c.Status != metav1.ConditionUnknown && !isRunOfSchedule(e) {
			regressed := 0.0
			if c.Status == metav1.ConditionTrue {
				regressed = 1
			}
			experimentRegressed.set(out, regressed, e.Namespace, e.Name)
		}
	}
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
	for _, verdict := range []v1alpha1.ComparisonVerdict{v1alpha1.ComparisonBetter, v1alpha1.ComparisonWorse, v1alpha1.ComparisonSame, v1alpha1.ComparisonCannotTell} {
		experimentComparisons.set(out, float64(says[verdict]), e.Namespace, e.Name, string(verdict))
	}
}

// collectRuns sends how many runs of a schedule have ended, from 0 on: the increase to the first one counts as well.
func (m *Metrics) collectRuns(out chan<- prometheus.Metric, e *v1alpha1.RedisExperiment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	runs := m.runs[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}]
	if runs.of != e.UID { // of a deleted one with this name, or none
		runs.counts = nil
	}
	for _, verdict := range verdicts {
		scheduleRunsTotal.count(out, m.since, runs.counts[verdict], e.Namespace, e.Name, verdict)
	}
}

func isRunOfSchedule(e *v1alpha1.RedisExperiment) bool {
	of := metav1.GetControllerOf(e)
	return of != nil && of.Kind == "RedisExperiment"
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
