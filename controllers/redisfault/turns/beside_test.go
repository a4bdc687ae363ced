package turns

import (
	"strings"
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
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// Of two faults that were recorded at the same time, and that hold copies of the same data, exactly one steps back: the
// later one, or the one that has done nothing yet. It waits for the other one, and the other one waits until it has
// stepped back.
func TestOneOfTwoStepsBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorded := func(name, pod string, at time.Time) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		f.Spec.Action.Type = v1alpha1.FaultPodKill
		f.Status = v1alpha1.RedisFaultStatus{
			StartTime: new(metav1.NewMicroTime(at)),
			Holding:   new(true),
			Targets:   []v1alpha1.FaultTarget{{Pod: pod, UID: "u-" + pod, Copies: []string{"redis-2"}}},
		}
		return f
	}
	for name, tc := range map[string]struct {
		otherAt   time.Duration // after this one
		attempted bool          // the other one may have begun
		over      bool          // the other one is over, and its copy is not back
		leaves    bool
	}{
		"the other one was first":      {otherAt: -time.Second, leaves: true},
		"this one was first":           {otherAt: time.Second},
		"this one was, but too late":   {otherAt: time.Second, attempted: true, leaves: true},
		"the other one is over by now": {over: true, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := recorded("own", "redis-0", now), recorded("other", "redis-1", now.Add(tc.otherAt))
			if tc.attempted {
				other.Status.Targets[0].Attempts = 1
			}
			reader := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own, other).
				WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(client.Object) []string { return []string{"true"} }).Build()
			if err := reader.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
				t.Fatal(err)
			}
			s := &scope.Fault{
				Fault:    own,
				Before:   own.DeepCopy(),
				Injector: &reverttest.Reverts{},
				Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}},
			}
			r := turnsOf(reader, reader, testingclock.NewFakePassiveClock(now.Add(time.Minute)))
			if hits, err := r.Claims.HitsNow(t.Context(), s.Fault); err != nil || len(hits) != 1 || hits[0].Pod != "redis-1" ||
				hits[0].Over {
				t.Fatalf("%+v, %v", hits, err)
			}
			refused := &guard.Occupied{
				Problem: &problem.Problem{Reason: v1alpha1.ReasonBlastRadius, Message: "RedisFault other holds redis-1"},
				By:      []string{"other"},
				Guard:   v1alpha1.AllowAllCopies,
			}
			if tc.over {
				refused.By = nil
			}
			o := r.StepBack(t.Context(), s, refused)
			if o.Err != nil || o.Problem == nil || o.Ended ||
				!strings.Contains(o.Problem.Message, "RedisFault other holds redis-1") ||
				(own.Status.StartTime == nil) != tc.leaves {
				t.Fatalf("%+v, recorded at %v", o, own.Status.StartTime)
			}
			waits := own.Status.Waiting
			if waits != nil != (tc.leaves && !tc.over) ||
				waits != nil && (waits.For != "other" || waits.Guard != v1alpha1.AllowAllCopies) {
				t.Errorf("it waits: %+v", waits)
			}
			if waits == nil {
				return
			}
			theirs, _ := lock.Held(other, claims.TraitsOf(other))
			if besideStill(s, []lock.Claim{theirs}) == "" || besideStill(s, nil) != "" {
				t.Errorf("beside it: %q, without it: %q", besideStill(s, []lock.Claim{theirs}), besideStill(s, nil))
			}
		})
	}
}
