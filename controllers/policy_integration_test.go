//go:build integration

package controllers

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// Two operators at once, three faults on three servers, and a policy that permits one at a time: never do two act.
func TestPolicyWithTwoOperators(t *testing.T) {
	t.Parallel()
	const faults = 3
	p := newPlace(t)
	p.mustChange(p.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.home()}}))
	p.setPolicy("version: v1alpha1\nmaxFaults: 1\n")
	fleet := startFleet(p, faults, nil)
	startKubelet(p, nil)
	startOperator(p, spy{})
	startOperator(p, spy{})
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = redisPods(fleet.address(0)), length(time.Hour)
	}))
	for i := range faults {
		f := hzFor(fmt.Sprint("fault-", i), v1alpha1.ParameterValue(fmt.Sprint(100+i)), time.Second)
		f.Spec.Select = v1alpha1.FaultSelector{
			Role:  v1alpha1.RoleAny,
			Mode:  v1alpha1.SelectAll,
			Names: []string{fmt.Sprint("redis-", i)},
		}
		f.Spec.Trigger.After = length(0)
		p.create(f)
	}
	var all v1alpha1.RedisFaultList
	waited, recorded := map[string]bool{}, 0
	over := func() bool {
		if err := p.client.List(t.Context(), &all, client.InNamespace(p.namespace), client.MatchingFields{
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
		if err := p.client.List(t.Context(), &all, client.InNamespace(p.namespace)); err != nil {
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
	p.until("all faults are over", 4*time.Minute, over, func() string { return fmt.Sprint(waited) })
	spans := make([]*v1alpha1.RedisFault, faults)
	for i := range faults {
		spans[i] = p.fault(fmt.Sprint("fault-", i))
	}
	if most := mostAtOnce(t, spans); most != 1 {
		t.Errorf("%d acted at once", most)
	}
	// Faults on one load are injected one after the other in any case: whether one comes as far as the limit is chance.
	// TestPolicyLimitsFaults waits for it.
	t.Logf("%d waited; at most %d were recorded at once", len(waited), recorded)
}
