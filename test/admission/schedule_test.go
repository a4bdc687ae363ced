//go:build integration

package admission_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
)

// The API server accepts what a schedule creates, of the longest name, and what the operator writes about it.
func TestRunsOfASchedule(t *testing.T) {
	o := created(t, object(t, "RedisExperimentSchedule", strings.Repeat("s", 18),
		`{schedule: "0 3 * * *", timeZone: Europe/Berlin, compareTo: {run: last, confirm: true},
		template: {spec: {objectives: {noRegression: true}}}}`))
	var s v1alpha1.RedisExperimentSchedule
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	first := children.ScheduledExperiment(&s, at, "")
	for name, run := range map[string]*v1alpha1.RedisExperiment{
		"first":      first,
		"second":     children.ScheduledExperiment(&s, at.Add(time.Hour), first.Name),
		"repetition": children.ConfirmingExperiment(&s, first.Name, 2, at, "before"),
	} {
		if err := strict.Create(t.Context(), run, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	status := v1alpha1.RedisExperimentScheduleStatus{
		Display:          &v1alpha1.ScheduleDisplay{Last: "2026-11-24T03:00+01:00", Next: "2026-11-25T03:00+01:00"},
		Active:           first.Name + "c",
		LastScheduleTime: new(metav1.NewTime(at)),
		Verdict:          v1alpha1.VerdictFail,
		Results:          children.HistoryName(s.Name),
		History: []v1alpha1.ScheduledRun{
			{Name: first.Name},
			{Name: first.Name + "c", Confirms: first.Name, Verdict: v1alpha1.VerdictFail, Regressed: 2, Message: "worse"},
		},
		Notification: &v1alpha1.ScheduleNotification{
			Run:     first.Name,
			Attempt: &v1alpha1.NotificationAttempt{Run: first.Name + "c", Count: 1, Time: metav1.Now()},
		},
		Changes: []v1alpha1.FigureChange{
			{Cell: "a=b", Figure: "outage", Since: first.Name, Found: first.Name, Change: v1alpha1.DecimalOf(-0.05)},
		},
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if err := patchStatus(t, o, string(text)); err != nil {
		t.Error(err)
	}
}
