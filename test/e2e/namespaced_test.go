//go:build e2e

package e2e_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestNamespaced runs an operator that `make e2e-namespaced` has installed with rights in one namespace: a fault is
// measured there, objects elsewhere are left alone, and the namespace can be deleted while a fault is active, although
// that removes the operator's Roles.
func TestNamespaced(t *testing.T) {
	n, elsewhere := &namespace{T: t, name: "redquake-e2e", began: time.Now()}, newNamespace(t, "elsewhere")
	t.Cleanup(func() {
		if t.Failed() {
			n.dump(context.WithoutCancel(t.Context()))
		}
	})
	elsewhere.create(elsewhere.smallLoad("base", time.Minute))
	n.applyRedis(nil)
	n.create(n.smallLoad("base", 30*time.Minute))
	kill := n.sampleKill("kill", "base")
	kill.Spec.Trigger = v1alpha1.FaultTrigger{After: span(13 * time.Second)}
	n.create(kill)
	n.eventually(patience, "the fault is over", func() (bool, string) {
		reason, message, complete, failed := completeReason(n.fault("kill").Status.Conditions)
		return complete || failed, reason + ": " + message
	})
	if f := n.fault("kill"); f.Status.Effect != v1alpha1.EffectConfirmed || f.Status.Impact == nil {
		t.Errorf("effect %s: %s; impact %+v", f.Status.Effect, f.Status.EffectEvidence, f.Status.Impact)
	}
	if test := elsewhere.loadTest("base"); len(test.Status.Conditions) > 0 || len(test.Finalizers) > 0 {
		t.Errorf("the load test elsewhere has been processed: %+v", test.Status.Conditions)
	}

	lasting := n.sampleKill("lasting", "base")
	lasting.Spec.Action = v1alpha1.Action{
		Type:   v1alpha1.FaultConfig,
		Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}},
	}
	lasting.Spec.Trigger, lasting.Spec.Duration = v1alpha1.FaultTrigger{After: span(0)}, span(20*time.Minute)
	n.create(lasting)
	n.waitFault("lasting", patience, v1alpha1.ReasonActive)
	n.deleteWhole()
}

// deleteWhole deletes the namespace and waits until it is gone.
func (n *namespace) deleteWhole() {
	n.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	since := time.Now()
	if err := cluster.Delete(n.Context(), ns); err != nil {
		n.Fatal(err)
	}
	n.eventually(patience, "the namespace is gone", func() (bool, string) {
		found := &corev1.Namespace{}
		err := cluster.Get(n.Context(), client.ObjectKey{Name: n.name}, found)
		return apierrors.IsNotFound(err), found.Status.String()
	})
	n.Logf("deleted after %s", time.Since(since).Round(100*time.Millisecond))
}
