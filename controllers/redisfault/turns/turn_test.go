package turns

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A fault is refused for good only if no other one can be the reason: none acts on the same pod by now, and none was
// reverted since the targets were selected.
func TestRefusalIsReconsidered(t *testing.T) {
	selected := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	instant := func(after time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(selected.Add(after))) }
	for name, c := range map[string]struct {
		other  *v1alpha1.RedisFaultStatus
		waits  bool
		again  bool
		reason string
	}{
		"alone": {reason: v1alpha1.ReasonInvalidSpec},
		"another one acts": {
			&v1alpha1.RedisFaultStatus{
				StartTime: instant(0),
				Holding:   new(true),
				Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0"}},
			},
			true,
			false,
			v1alpha1.ReasonWaitingForFault,
		},
		"another one acts elsewhere": {
			&v1alpha1.RedisFaultStatus{
				StartTime: instant(0),
				Holding:   new(true),
				Targets:   []v1alpha1.FaultTarget{{Pod: "redis-1"}},
			},
			false,
			false,
			v1alpha1.ReasonInvalidSpec,
		},
		"another one was reverted since": {
			&v1alpha1.RedisFaultStatus{StartTime: instant(0), RevertedAt: instant(time.Second)},
			false,
			true,
			"",
		},
		"another one was reverted before": {
			&v1alpha1.RedisFaultStatus{StartTime: instant(-time.Minute), RevertedAt: instant(-time.Second)},
			false,
			false,
			v1alpha1.ReasonInvalidSpec,
		},
	} {
		t.Run(name, func(t *testing.T) {
			own := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own", UID: "own"}}
			objects := []client.Object{own}
			if c.other != nil {
				objects = append(objects, &v1alpha1.RedisFault{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other"},
					Status:     *c.other,
				})
			}
			r := turnsOf(nil,
				apitest.Paged(fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(objects...).Build()), nil)
			s := &scope.Fault{Fault: own, Now: selected}
			wanted := lock.Wanted(own, s.Traits, []v1alpha1.FaultTarget{{Pod: "redis-0"}}, nil, nil, selected)
			o := r.Reconsider(t.Context(), s, wanted, state.Outcome{
				Problem: &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Lasting: true},
				Ended:   true,
				Failed:  true,
			})
			if o.Again != c.again || o.Ended != (c.reason == v1alpha1.ReasonInvalidSpec) ||
				(own.Status.Waiting != nil) != c.waits || c.reason != "" && o.Problem.Reason != c.reason {
				t.Errorf("%+v, problem %+v, waiting %+v", o, o.Problem, own.Status.Waiting)
			}
		})
	}
}

// A fault that waited for another one, and now waits for the next one, is reconciled when that ends.
func TestTheNextOneEndsTheWait(t *testing.T) {
	since := metav1.NowMicro()
	on := func(name string) *v1alpha1.RedisFault {
		return &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	}
	second, third := on("second"), on("third")
	second.Status = v1alpha1.RedisFaultStatus{
		StartTime: &since,
		Holding:   new(true),
		Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0"}},
	}
	third.Status.Waiting = &v1alpha1.WaitingFault{Since: since, Pods: []string{"redis-0"}, For: "first"}
	r := turnsOf(fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(second, third).
		WithStatusSubresource(third).Build(), nil, nil)
	s := &scope.Fault{Fault: third.DeepCopy()}
	if err := r.ObserveTurn(t.Context(), s); err != nil || s.Seen.Blocked == "" ||
		s.Fault.Status.Waiting.For != "second" || !s.Fault.Status.Waiting.Since.Equal(&since) {
		t.Fatalf("%v, %q, %+v", err, s.Seen.Blocked, s.Fault.Status.Waiting)
	}
	if err := r.Reach.Client.Status().Update(t.Context(), s.Fault); err != nil {
		t.Fatal(err)
	}
	second.Status.Holding = nil
	if woken := r.WokenBy(t.Context(), second); len(woken) != 1 || woken[0].Name != "third" {
		t.Errorf("woken: %v", woken)
	}
}
