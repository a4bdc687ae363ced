package children

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/schedule"
)

// ComponentScheduled is the value of the label app.kubernetes.io/component on the runs of a schedule.
const ComponentScheduled = "scheduled"

// ExperimentHistoryKey is the key of binaryData that holds the history of a schedule, in the ConfigMap of ExperimentRecordName.
const ExperimentHistoryKey = "history.json.gz"

// ScheduledName is the name of the run of a scheduled time: the same for the same time.
func ScheduledName(schedule string, minutes int64) string {
	return fmt.Sprintf("%s-%d", schedule, minutes)
}

// ConfirmingName is the name of the repetition of a run, after so many others that could not tell: as long as any other one.
func ConfirmingName(run string, before int) string { return run + string(rune('c'+before)) }

// ExperimentHistory is the ConfigMap with the history of a schedule.
func ExperimentHistory(e *v1alpha1.RedisExperiment, data []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: configMapType, ObjectMeta: ofExperiment(e, ExperimentRecordName(e.Name), ComponentResults), BinaryData: map[string][]byte{ExperimentHistoryKey: data},
	}
}

// ScheduledExperiment is the run of a scheduled time. earlier is the run with which it is compared; "" = there is none.
func ScheduledExperiment(e *v1alpha1.RedisExperiment, at time.Time, earlier string) *v1alpha1.RedisExperiment {
	run := &v1alpha1.RedisExperiment{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisExperiment"}, ObjectMeta: ofExperiment(e, ScheduledName(e.Name, schedule.Minutes(at)), ComponentScheduled),
		Spec: *e.Spec.DeepCopy(),
	}
	run.Annotations = map[string]string{v1alpha1.AnnotationScheduledAt: at.UTC().Format(time.RFC3339)}
	s := &run.Spec
	s.Schedule, s.TimeZone, s.StartingDeadlineSeconds, s.ConcurrencyPolicy, s.SuccessfulRunsHistoryLimit, s.FailedRunsHistoryLimit = "", nil, nil, "", nil, nil
	s.Suspend, s.Abort, s.TTLSecondsAfterFinished = false, false, nil // these are the schedule's; the history limits delete its runs
	s.CompareTo, s.Notify = nil, nil
	if earlier != "" {
		s.CompareTo = &v1alpha1.EarlierRun{Run: earlier}
	} else if s.Objectives != nil { // there is nothing that it could have regressed against
		s.Objectives.NoRegression = false
	}
	return run
}

// ConfirmingExperiment is the repetition of a run, compared with the same earlier one, after so many others that could not tell.
func ConfirmingExperiment(e *v1alpha1.RedisExperiment, run string, before int, at time.Time, earlier string) *v1alpha1.RedisExperiment {
	again := ScheduledExperiment(e, at, earlier)
	again.Name = ConfirmingName(run, before)
	again.Annotations[v1alpha1.AnnotationConfirms] = run
	return again
}
