package turns

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// A fault that was recorded while the cache showed those in spec.beside active asks the API server before it begins, and
// ends where one of them is over, gone, or another one of that name.
func TestPartnersAreAskedForBeforeTheInjection(t *testing.T) {
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	acting := func(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first", UID: "first"}}
		f.Spec.Action.Type = v1alpha1.FaultHang
		f.Status.StartTime, f.Status.Holding, f.Status.InjectedAt = &now, new(true), &now
		f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", InjectedAt: &now, ActiveAt: &now}}
		change(f)
		return f
	}
	for name, tc := range map[string]struct {
		first *v1alpha1.RedisFault // nil = it is gone
		may   bool
	}{
		"it acts":           {acting(func(*v1alpha1.RedisFault) {}), true},
		"it is gone":        {nil, false},
		"it is over":        {acting(func(f *v1alpha1.RedisFault) { f.Status.RevertingSince = &now }), false},
		"it is another one": {acting(func(f *v1alpha1.RedisFault) { f.UID = "later" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			own := acting(func(f *v1alpha1.RedisFault) {
				f.Name, f.UID, f.Spec.Beside = "own", types.UID("own"), []string{"first"}
				f.Spec.Action.Type, f.Status.BesideUIDs = "", []string{"first"} // its injector is the one below
				f.Status.InjectedAt, f.Status.Targets[0].InjectedAt, f.Status.Targets[0].ActiveAt = nil, nil, nil
			})
			made := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own).
				WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(client.Object) []string { return []string{"true"} })
			if tc.first != nil {
				made.WithObjects(tc.first)
			}
			api := made.Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
				t.Fatal(err)
			}
			s := &scope.Fault{
				Fault: own, Before: own.DeepCopy(),
				Injector: &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}},
			}
			o, may := turnsOf(api, api, clock.RealClock{}).MayAct(t.Context(), s)
			if may != tc.may || o.Err != nil {
				t.Fatalf("%t, %+v", may, o)
			}
			if !may && (!o.Ended || !o.Failed || o.Problem == nil || o.Problem.Reason != v1alpha1.ReasonNotBeside ||
				!strings.Contains(o.Problem.Message, "spec.beside: RedisFault first does not act any more") ||
				own.Status.StartTime != nil) {
				t.Errorf("%+v: %+v", o, own.Status)
			}
		})
	}
}
