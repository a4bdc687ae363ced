package turns

import (
	"context"
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
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// brokenTarget is an injector whose target an earlier process has broken.
type brokenTarget struct{ *reverttest.Reverts }

func (brokenTarget) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return true, nil }

// A fault that yields reverts first what a process may have prepared that has ended, and keeps its record until
// then. It does not yield if that process has broken a target: its record is the only one of that.
func TestYield(t *testing.T) {
	waits := &problem.Problem{Reason: v1alpha1.ReasonWaitingForPolicy, Message: "1 of 1 faults act"}
	for _, tc := range []struct {
		name         string
		injector     contract.Injector
		goes, leaves bool
	}{
		{"nothing is prepared", &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}, false, true},
		{
			"a taint cannot be reverted now",
			&reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal}},
			false,
			false,
		},
		{
			"a taint is being reverted",
			&reverttest.Reverts{Answers: []reverttest.Answer{{Progress: contract.Underway("the node is untainted")}}},
			false,
			false,
		},
		{"a target is broken", brokenTarget{&reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}}, true, false},
	} {
		r, now := turnsOf(nil, nil, nil), metav1.NewMicroTime(time.Now())
		s := &scope.Fault{
			Fault:    &v1alpha1.RedisFault{},
			Injector: tc.injector,
			Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}},
		}
		s.Fault.Status = v1alpha1.RedisFaultStatus{
			StartTime: &now,
			Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0"}},
			Holding:   new(true),
		}
		o, goes := r.yield(t.Context(), s, func() *problem.Problem { return waits })
		if goes != tc.goes || o.Ended || o.Err != nil || (o.Problem != nil) != tc.leaves ||
			(s.Fault.Status.StartTime == nil) != tc.leaves || (Holds(s, false) == nil) != tc.leaves {
			t.Errorf("%s: %v, %+v, %+v", tc.name, goes, o, s.Fault.Status)
		}
		if b, is := tc.injector.(brokenTarget); is && len(b.Calls()) > 0 {
			t.Errorf("%s: it was reverted %d times", tc.name, len(b.Calls()))
		}
	}
}

// A fault that has waited, was recorded and yields to another one keeps its place in the queue. One that has not
// waited is in the queue since its record.
func TestGivingWayKeepsThePlace(t *testing.T) {
	recorded := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	waited := metav1.NewMicroTime(recorded.Add(-time.Hour))
	for name, tc := range map[string]struct {
		before *v1alpha1.WaitingFault
		want   metav1.MicroTime
	}{
		"it has waited":     {&v1alpha1.WaitingFault{Since: waited}, waited},
		"it has not waited": {nil, recorded},
	} {
		t.Run(name, func(t *testing.T) {
			acting := func(name string, since metav1.MicroTime) *v1alpha1.RedisFault {
				return &v1alpha1.RedisFault{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
					Status: v1alpha1.RedisFaultStatus{
						StartTime: &since,
						Holding:   new(true),
						Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0"}},
					},
				}
			}
			own := acting("own", recorded)
			own.Status.Waiting = tc.before
			api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
				WithObjects(own, acting("other", metav1.NewMicroTime(recorded.Add(-time.Second)))).
				WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(client.Object) []string { return []string{"true"} }).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
				t.Fatal(err)
			}
			r := turnsOf(api, api, clock.RealClock{})
			s := &scope.Fault{Fault: own, Before: own.DeepCopy()}
			o, may := r.MayAct(t.Context(), s)
			if w := own.Status.Waiting; may || o.Err != nil || own.Status.StartTime != nil || w == nil || w.For != "other" ||
				!w.Since.Equal(&tc.want) {
				t.Errorf("%t, %+v: %+v, want since %s", may, o, own.Status, tc.want)
			}
		})
	}
}
