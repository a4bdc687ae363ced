package redisfault

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// The addresses of a namespace are kept while one of its faults needs them, and not until the operator ends.
func TestAddressesAreKeptForUnfinishedFaults(t *testing.T) {
	faultNamed := func(namespace, name string) *v1alpha1.RedisFault {
		return &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		}
	}
	finished := faultNamed("shop", "finished")
	second := faultNamed("shop", "second")
	third := faultNamed("shop", "third")
	other := faultNamed("bank", "other")
	finish := func(f *v1alpha1.RedisFault) {
		meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{
			Type:   v1alpha1.ConditionComplete,
			Status: metav1.ConditionTrue,
			Reason: v1alpha1.ConditionComplete,
		})
	}
	finish(finished)
	stored := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(second).
		WithObjects(finished, second, third, other).Build()
	r := &Reconciler{
		Client:    stored,
		APIReader: stored,
		Clock:     testingclock.NewFakePassiveClock(time.Now()),
		Term:      faultrun.NewRegistry(nil).NewTerm(),
	}
	r.restoring.Do(func() { r.restored = make(chan struct{}); close(r.restored) })
	r.reach().ServersOf("shop")
	r.reach().ServersOf("bank")
	expect := func(after string, reconciled *v1alpha1.RedisFault, want bool) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{
			NamespacedName: client.ObjectKeyFromObject(reconciled),
		}); err != nil {
			t.Fatal(err)
		}
		if _, kept := r.books.Load("shop"); kept != want {
			t.Errorf("%s: the addresses are kept: %t", after, kept)
		}
	}
	expect("one of three is finished", finished, true)
	finish(second)
	if err := stored.Status().Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	expect("two of three are", second, true)
	if err := stored.Delete(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	expect("the last one was deleted", third, false)
	if _, kept := r.books.Load("bank"); !kept {
		t.Error("the addresses of another namespace are gone")
	}
}
