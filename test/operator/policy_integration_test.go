//go:build integration

package operator

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// Two operators at once, three faults on three servers, and a policy that permits one at a time: never do two act.
func TestPolicyWithTwoOperators(t *testing.T) {
	t.Parallel()
	const faults = 3
	p := operatortest.NewPlace(t)
	p.MustChange(p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Home()}}))
	p.SetPolicy("version: v1alpha1\nmaxFaults: 1\n")
	fleet := stage.StartFleet(p, faults, nil)
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = stage.RedisPods(fleet.Address(0)), operatortest.Length(time.Hour)
	}))
	for i := range faults {
		f := operatortest.HzFor(fmt.Sprint("fault-", i), v1alpha1.ParameterValue(fmt.Sprint(100+i)), time.Second)
		f.Spec.Select = v1alpha1.FaultSelector{
			Role:  v1alpha1.RoleAny,
			Mode:  v1alpha1.SelectAll,
			Names: []string{fmt.Sprint("redis-", i)},
		}
		f.Spec.Trigger.After = operatortest.Length(0)
		p.Create(f)
	}
	var all v1alpha1.RedisFaultList
	waited, recorded := map[string]bool{}, 0
	over := func() bool {
		if err := p.Client.List(t.Context(), &all, client.InNamespace(p.Namespace), client.MatchingFields{
			"status.holding": "true",
		}); err != nil {
			t.Fatal(err)
		}
		acting := 0
		for i := range all.Items {
			if all.Items[i].Status.InjectedAt != nil {
				acting++
			}
		}
		if recorded = max(recorded, len(all.Items)); acting > 1 {
			t.Errorf("%d faults act", acting)
		}
		if err := p.Client.List(t.Context(), &all, client.InNamespace(p.Namespace)); err != nil {
			t.Fatal(err)
		}
		ended := 0
		for i := range all.Items {
			if w := all.Items[i].Status.Waiting; w != nil && w.Limit == v1alpha1.LimitFaults {
				waited[all.Items[i].Name] = true
			}
			if state.IsFinished(all.Items[i].Status.Conditions) {
				ended++
			}
		}
		return ended == faults
	}
	p.Until("all faults are over", 4*time.Minute, over, func() string { return fmt.Sprint(waited) })
	spans := make([]*v1alpha1.RedisFault, faults)
	for i := range faults {
		spans[i] = p.Fault(fmt.Sprint("fault-", i))
	}
	if most := operatortest.MostAtOnce(t, spans); most != 1 {
		t.Errorf("%d acted at once", most)
	}
	// Faults on one load are injected one after the other in any case: whether one comes as far as the limit is chance.
	// TestPolicyLimitsFaults waits for it.
	t.Logf("%d waited; at most %d were recorded at once", len(waited), recorded)
}
