package children

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// ComponentScheduled is the value of the label app.kubernetes.io/component on the runs of a
// schedule.
const ComponentScheduled = "scheduled"

// HistoryKey is the key of binaryData that holds the history of a schedule.
const HistoryKey = "history.json.gz"

// HistoryName is the name of the ConfigMap with the history of a schedule.
func HistoryName(schedule string) string {
	return schedule + "-history"
}

// ScheduledName is the name of the run of a scheduled time: the same for the same time.
func ScheduledName(schedule string, minutes int64) string {
	return fmt.Sprintf("%s-%d", schedule, minutes)
}

// ConfirmingName is the name of the repetition of a run, after so many others that could not tell:
// as long as any other one.
func ConfirmingName(run string, before int) string {
	return run + string(rune('c'+before))
}

// History is the ConfigMap with the history of a schedule.
func History(s *v1alpha1.RedisExperimentSchedule, data []byte) *corev1.ConfigMap {
	return configMap(ofSchedule(s, HistoryName(s.Name), ComponentResults), HistoryKey, data)
}

// ScheduledExperiment is the run of a scheduled time. earlier is the run with which it is compared;
// "" = there is none.
func ScheduledExperiment(
	s *v1alpha1.RedisExperimentSchedule, at time.Time, earlier string,
) *v1alpha1.RedisExperiment {
	run := &v1alpha1.RedisExperiment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisExperiment"},
		ObjectMeta: ofSchedule(s, ScheduledName(s.Name, crontab.Minutes(at)), ComponentScheduled),
		Spec:       *s.Spec.Template.Spec.DeepCopy(),
	}
	run.Annotations = map[string]string{v1alpha1.AnnotationScheduledAt: at.UTC().Format(time.RFC3339)}
	if earlier != "" {
		run.Spec.CompareTo = &v1alpha1.EarlierRun{Run: earlier}
	} else if run.Spec.Objectives != nil { // there is nothing that it could have regressed against
		run.Spec.Objectives.NoRegression = false
	}
	return run
}

// ConfirmingExperiment is the repetition of a run, compared with the same earlier one, after so
// many others that could not tell.
func ConfirmingExperiment(
	s *v1alpha1.RedisExperimentSchedule, run string, before int, at time.Time, earlier string,
) *v1alpha1.RedisExperiment {
	again := ScheduledExperiment(s, at, earlier)
	again.Name = ConfirmingName(run, before)
	again.Annotations[v1alpha1.AnnotationConfirms] = run
	return again
}

func ofSchedule(s *v1alpha1.RedisExperimentSchedule, name, component string) metav1.ObjectMeta {
	return owned(s, "RedisExperimentSchedule", name, ScheduleLabels(s.Name, component))
}

// ScheduleLabels select a schedule's children.
func ScheduleLabels(schedule, component string) map[string]string {
	return labels(v1alpha1.LabelSchedule, schedule, component)
}

// ScheduleOf is the schedule of which an experiment is a run; nil = it is of none.
func ScheduleOf(e *v1alpha1.RedisExperiment) *metav1.OwnerReference {
	of := metav1.GetControllerOf(e)
	if of != nil && of.Kind == "RedisExperimentSchedule" &&
		strings.HasPrefix(of.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return of
	}
	return nil
}

// ResultsSeriesKey is the key of binaryData that holds the encoded series. The series itself
// records what was coarsened and what is missing.
const ResultsSeriesKey = "series"

// ResultsDocumentKey is the key of data that holds the result of a test that is over: JSON of
// package result, described in docs/record.md.
const ResultsDocumentKey = "result.json"

// MaxResultsDocument bounds that JSON, in bytes: beside the record, a ConfigMap has room for as
// much.
const MaxResultsDocument = 96 << 10

// ResultsFaultsKey is the key of binaryData that holds the results of the faults on a test, as
// package result compresses them.
const ResultsFaultsKey = "faults.json.gz"

// MaxResultsFaults bounds these, in bytes: a ConfigMap holds 1 MiB, of which the record takes at
// most 900 KiB.
const MaxResultsFaults = 24 << 10

// ResultsConfigMap holds the record of a test so far: data is the encoded series.
func ResultsConfigMap(test *v1alpha1.RedisLoadTest, data []byte) *corev1.ConfigMap {
	return configMap(ofLoadTest(test, ResultsName(test.Name), ComponentResults),
		ResultsSeriesKey, data)
}

// configMap holds data under a key.
func configMap(meta metav1.ObjectMeta, key string, data []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   configMapType,
		ObjectMeta: meta,
		BinaryData: map[string][]byte{key: data},
	}
}

// ResultsIn are the results that a ConfigMap of ResultsConfigMap has beside the record, as far as
// they are stored.
func ResultsIn(stored *corev1.ConfigMap) (kept result.Run, err error) {
	if kept.Faults, err = document.KeptFaults(stored.BinaryData[ResultsFaultsKey]); err != nil {
		return kept, fmt.Errorf("%s of ConfigMap %s: %w", ResultsFaultsKey, stored.Name, err)
	}
	if text, ok := stored.Data[ResultsDocumentKey]; ok {
		if kept.Load, err = document.DecodeLoad([]byte(text)); err != nil {
			return kept, fmt.Errorf("%s of ConfigMap %s %w", ResultsDocumentKey, stored.Name, err)
		}
	}
	return kept, nil
}

var configMapType = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
