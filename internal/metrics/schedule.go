package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

var (
	scheduleInfo = define(Definition{
		Name:   "redquake_schedule_info",
		Kind:   Gauge,
		Labels: []string{labelNamespace, labelSchedule, labelState, labelVerdict},
		Help: "1 for each RedisExperimentSchedule, with the verdict of its last run, and its state: " +
			"Ready; Suspended; NotReady: no runs are created, the condition Ready says why.",
		Example: `max by (namespace, schedule) (redquake_schedule_info{state="NotReady"}) == 1`,
	})
	scheduleRegressed = define(Definition{
		Name:   "redquake_schedule_regressed",
		Kind:   Gauge,
		Labels: []string{labelNamespace, labelSchedule},
		Help: "Whether a figure of the runs of a RedisExperimentSchedule is worse than in earlier " +
			"ones (1) or not (0); absent while that is unknown.",
		Example: `max by (namespace, schedule) (redquake_schedule_regressed) == 1`,
	})
	scheduleSkipped = define(Definition{
		Name:   "redquake_schedule_skipped_total",
		Kind:   Counter,
		Labels: []string{labelNamespace, labelSchedule},
		Help: "Scheduled times of a RedisExperimentSchedule at which no run was created: " +
			"status.skipped of the object, which does not begin with 0 in each process.",
		Example: `max by (namespace, schedule) (redquake_schedule_skipped_total) - min by (namespace, schedule) ` +
			`(min_over_time(redquake_schedule_skipped_total[26h])) > 0`,
	})
	scheduleRunsTotal = define(Definition{
		Name:    "redquake_schedule_runs_total",
		Kind:    Counter,
		Labels:  []string{labelNamespace, labelSchedule, labelVerdict},
		Help:    "Runs of a RedisExperimentSchedule that have ended, since this process has started, by verdict.",
		Example: `sum by (namespace, schedule, verdict) (increase(redquake_schedule_runs_total[1d]))`,
	})
)

// scheduleRuns counts the runs of one schedule by verdict.
type scheduleRuns struct {
	of     types.UID
	counts map[string]uint64
}

// RunRecorded counts a run of a schedule. Call it once the run is part of the stored history.
// verdict is empty if it could not complete.
func (m *Metrics) RunRecorded(
	schedule *v1alpha1.RedisExperimentSchedule, verdict v1alpha1.Verdict,
) {
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

// ForgetSchedule frees what is kept of a schedule that was deleted.
func (m *Metrics) ForgetSchedule(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, key)
}

func (m *Metrics) collectSchedules(
	out chan<- prometheus.Metric, all []v1alpha1.RedisExperimentSchedule,
) {
	for i := range all {
		s := &all[i]
		scheduleInfo.set(out, 1, s.Namespace, s.Name, stateOfSchedule(s), string(s.Status.Verdict))
		scheduleSkipped.count(out, s.CreationTimestamp.Time, uint64(max(0, s.Status.Skipped)),
			s.Namespace, s.Name)
		m.collectRuns(out, s)
		collectRegressed(out, scheduleRegressed, s.Namespace, s.Name, s.Status.Conditions)
	}
}

// stateOfSchedule is where a schedule stands.
func stateOfSchedule(s *v1alpha1.RedisExperimentSchedule) string {
	switch {
	case meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionSuspended):
		return stateSuspended
	case meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady):
		return "Ready"
	}
	return "NotReady"
}

// collectRuns sends how many runs of a schedule have ended, from 0 on: the increase to the first
// one counts as well.
func (m *Metrics) collectRuns(out chan<- prometheus.Metric, s *v1alpha1.RedisExperimentSchedule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	runs := m.runs[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]
	if runs.of != s.UID { // of a deleted one with this name, or none
		runs.counts = nil
	}
	for _, verdict := range verdicts {
		scheduleRunsTotal.count(out, m.since, runs.counts[verdict], s.Namespace, s.Name, verdict)
	}
}
