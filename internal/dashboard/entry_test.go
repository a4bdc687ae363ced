package dashboard

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// The list has a schedule with its times and with what kubectl shows in the column STATUS.
func TestEntryOfASchedule(t *testing.T) {
	t.Parallel()
	o := OfSchedule(&v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop"},
		Spec:       v1alpha1.RedisExperimentScheduleSpec{Schedule: "0 3 * * *"},
		Status: v1alpha1.RedisExperimentScheduleStatus{
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRefused},
			},
			Verdict: v1alpha1.VerdictPass,
			Display: &v1alpha1.ScheduleDisplay{Last: "2026-11-24T03:00Z", Next: "2026-11-25T03:00Z"},
		},
	})
	if o.Key != (Key{Schedules, "shop", "nightly"}) || o.Type != "0 3 * * *" || o.Status != "Refused" ||
		o.Verdict != report.Pass {
		t.Errorf("%+v", o)
	}
	if want := []report.Fact{
		{Name: "last", Value: "2026-11-24T03:00Z"},
		{Name: "next", Value: "2026-11-25T03:00Z"},
	}; !slices.Equal(o.Figures, want) {
		t.Errorf("%v, want %v", o.Figures, want)
	}
}
