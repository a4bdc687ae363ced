package turns

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// A fault that yields to another one on the same server does not take what that one has broken for its own work, and
// does not revert it.
func TestYieldToAFaultOnTheSameServer(t *testing.T) {
	recorded := func(name string, at time.Time) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		f.Status = v1alpha1.RedisFaultStatus{
			StartTime: new(metav1.NewMicroTime(at)),
			Holding:   new(true),
			Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}},
		}
		return f
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own, other := recorded("own", now.Add(time.Second)), recorded("other", now)
	own.UID, other.UID = "own", "other"
	reader := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own, other).
		WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(client.Object) []string { return []string{"true"} }).Build()
	if err := reader.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Fatal(err)
	}
	injector := &reverttest.Reverts{}
	s := &scope.Fault{
		Fault:    own,
		Before:   own.DeepCopy(),
		Injector: brokenTarget{injector},
		Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}},
	}
	o, may := turnsOf(nil, reader, testingclock.NewFakePassiveClock(now)).MayAct(t.Context(), s)
	if may || o.Err != nil || o.Problem == nil || o.Problem.Reason != v1alpha1.ReasonWaitingForFault ||
		own.Status.StartTime != nil || len(injector.Calls()) > 0 {
		t.Errorf("it may act: %t, %+v, recorded at %v, %d reverts", may, o, own.Status.StartTime, len(injector.Calls()))
	}
}

// A fault that was recorded while another one acted on the same server selects its targets again: it would take what
// that one has done for its own work. It does not if the other one was reverted before, has done nothing, acted
// elsewhere, or is a setting of its load, which may end while it acts.
func TestSelectAgainAfterAnotherFault(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RedisFault)
		again  bool
	}{
		"it has acted since": {func(*v1alpha1.RedisFault) {}, true},
		"in the future": {func(f *v1alpha1.RedisFault) {
			f.Status.RevertedAt = new(
				metav1.NewMicroTime(now.Add(time.Hour)))
		}, false},
		"before": {func(f *v1alpha1.RedisFault) {
			f.Status.RevertedAt = new(metav1.NewMicroTime(now.Add(-time.Millisecond)))
		}, false},
		"it was aborted while it waited": {func(f *v1alpha1.RedisFault) { f.Status.InjectedAt = nil }, false},
		"on another server":              {func(f *v1alpha1.RedisFault) { f.Status.Targets[0].Pod = "redis-1" }, false},
		"a setting of its load":          {func(f *v1alpha1.RedisFault) { f.Spec.Setting = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			fault := func(name string) *v1alpha1.RedisFault {
				f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
				f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: "run"}
				f.Status = v1alpha1.RedisFaultStatus{
					StartTime: new(metav1.NewMicroTime(now)),
					Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}},
				}
				return f
			}
			own, other := fault("own"), fault("other")
			own.Status.Holding = new(true)
			other.Status.InjectedAt, other.Status.RevertedAt = new(metav1.NewMicroTime(now)), new(
				metav1.NewMicroTime(now.Add(time.Second)))
			tc.change(other)
			reader := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own, other).
				WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(o client.Object) []string {
					if o.(*v1alpha1.RedisFault).Status.Holding == nil {
						return nil
					}
					return []string{"true"}
				}).Build()
			if err := reader.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
				t.Fatal(err)
			}
			injector := &reverttest.Reverts{}
			s := &scope.Fault{
				Fault:    own,
				Before:   own.DeepCopy(),
				Injector: brokenTarget{injector},
				Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}},
			}
			o, may := turnsOf(nil, reader, testingclock.NewFakePassiveClock(now.Add(time.Minute))).MayAct(t.Context(), s)
			if may == tc.again || o.Again != tc.again || o.Err != nil || (own.Status.StartTime == nil) != tc.again ||
				len(injector.Calls()) > 0 {
				t.Errorf("it may act: %t, %+v, recorded at %v, %d reverts", may, o, own.Status.StartTime, len(injector.Calls()))
			}
		})
	}
}
