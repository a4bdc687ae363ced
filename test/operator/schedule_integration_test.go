//go:build integration

package operator

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// A schedule of every minute, with the clock of the machine and a manager as main makes it: its run is created when its
// time has come, applies load, and is recorded once it was aborted.
func TestScheduleOnARealClock(t *testing.T) {
	t.Parallel()
	const within = 5 * time.Minute
	p := operatortest.Scenario{}.OnAPIServer(t)
	created := time.Now()
	p.Create(scheduletest.NewSchedule("minutely", func(e *v1alpha1.RedisExperimentSchedule) {
		e.Spec.Schedule = "* * * * *"
		e.Spec.Template.Spec.Template.Spec.Target.Addresses = []string{p.Redis.Address()}
		e.Spec.Template.Spec.Template.Spec.Load.Duration = operatortest.Length(time.Hour)
		e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last", Confirm: true}
	}))
	e := scheduletest.ScheduleIs(p, "minutely", "its run is created", within,
		func(e *v1alpha1.RedisExperimentSchedule) bool {
			return e.Status.Active != ""
		})
	run := p.Experiment(e.Status.Active)
	at, err := time.Parse(time.RFC3339, run.Annotations[v1alpha1.AnnotationScheduledAt])
	if err != nil || at.Truncate(time.Minute) != at || at.Before(created) || run.CreationTimestamp.Time.Before(at) {
		t.Errorf("the schedule was created at %s, its run %s of %s at %s", created, run.Name, at, run.CreationTimestamp)
	}
	if run.Name != scheduletest.NameOf("minutely", at) || !metav1.IsControlledBy(run, e) ||
		!e.Status.LastScheduleTime.Time.Equal(at) {
		t.Errorf("run %s: %+v; last scheduled time %s, want %s", run.Name, run.ObjectMeta, e.Status.LastScheduleTime, at)
	}
	p.TestHasReason(run.Name+"-0001", within, v1alpha1.ReasonRunning)
	p.MustChange(operatortest.Change(p, run, func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
	h := scheduletest.RunsHaveEnded(p, "minutely", 1, within).Status.History
	if h[0].Name != run.Name || h[0].Verdict != v1alpha1.VerdictInconclusive ||
		!strings.HasPrefix(h[0].Message, "Aborted: ") || !p.Read(scheduletest.HistoryOf("minutely")) {
		t.Errorf("%+v", h)
	}
	p.MustChange(p.Client.Delete(t.Context(), scheduletest.Schedule(p, "minutely")))
	t.Logf("created %s after its time", run.CreationTimestamp.Sub(at))
}
