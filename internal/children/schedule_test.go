package children

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

var nightly = &v1alpha1.RedisExperimentSchedule{
	ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop", UID: "5d5b5c0a-0c5e-4c11-9a37-9d7b0f3e7a10"},
	Spec: v1alpha1.RedisExperimentScheduleSpec{
		Schedule:  "0 3 * * *",
		Suspend:   true,
		CompareTo: &v1alpha1.ScheduleComparison{Run: "last", Confirm: true},
		Template: v1alpha1.ExperimentTemplate{
			Spec: v1alpha1.RedisExperimentSpec{Objectives: &v1alpha1.ExperimentObjectives{NoRegression: true}},
		},
	},
}

// What a schedule creates: its runs, the repetition of one, and the history.
func TestChildrenOfASchedule(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	first := ScheduledExperiment(nightly, at, "")
	isGolden(t, "scheduled_first.yaml", first)
	isGolden(t, "scheduled_repetition.yaml", ConfirmingExperiment(nightly, first.Name, 0, at, "nightly-29900340"))
	isGolden(t, "history.yaml", History(nightly, []byte("history")))
}

// A run is its schedule's; what somebody else owns or labels is not.
func TestScheduleOf(t *testing.T) {
	t.Parallel()
	run := ScheduledExperiment(nightly, time.Now(), "")
	if of := ScheduleOf(run); of == nil || of.Name != nightly.Name || of.UID != nightly.UID {
		t.Errorf("the run is of %v", of)
	}
	run.OwnerReferences[0].Kind = "Deployment"
	if of := ScheduleOf(run); of != nil {
		t.Errorf("what a Deployment owns is of %v", of)
	}
	if of := ScheduleOf(&v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Labels: run.Labels}}); of != nil {
		t.Errorf("what nobody owns is of %v", of)
	}
}

// The runs of a schedule with the longest name, also repetitions, have names that experiments may have.
func TestNamesOfRuns(t *testing.T) {
	t.Parallel()
	last := ConfirmingName(ScheduledName(strings.Repeat("s", 18), 99_999_999), 2)
	if len(last) != 28 {
		t.Errorf("%s has %d characters, want 28, which an experiment may have", last, len(last))
	}
}
