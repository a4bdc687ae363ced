package children_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
)

// The faults of a run name each other by the names that they have there, and a random delay is added to the time from
// which they count.
func TestFaultsOfARunBesideEachOther(t *testing.T) {
	t.Parallel()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: "gap", UID: "1"}}
	first, second := v1alpha1.ExperimentFault{Name: "away"}, v1alpha1.ExperimentFault{Name: "failover"}
	second.Spec.Beside = []string{"away"}
	second.Spec.Trigger.AfterBeside = &metav1.Duration{Duration: time.Minute}
	second.RandomDelay = &metav1.Duration{Duration: time.Second}
	v := &experiment.Variant{Faults: []v1alpha1.ExperimentFault{first, second}}
	made := children.RunFaults(e, v, experiment.Slot{Number: 7}, 1)
	trigger := made[1].Spec.Trigger
	if !slices.Equal(made[1].Spec.Beside, []string{made[0].Name}) || trigger.SteadyFor != nil || trigger.After != nil ||
		trigger.AfterBeside.Duration < time.Minute || trigger.AfterBeside.Duration > time.Minute+time.Second {
		t.Errorf("%s: beside %q, %+v", made[0].Name, made[1].Spec.Beside, trigger)
	}
	if second.Spec.Beside[0] != "away" || v.Faults[1].Spec.Beside[0] != "away" {
		t.Error("the experiment was changed")
	}
	checks := children.Checks(e, []experiment.Variant{*v})
	if len(checks) != 2 || !slices.Equal(checks[1].Fault.Spec.Beside, []string{"gap-0001-away"}) {
		t.Errorf("%+v", checks)
	}
}
