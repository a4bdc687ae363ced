package fault

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A fault is refused for good only if no other one can be the reason: none acts on the same pod by now, and none was reverted since the targets were selected.
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
		"another one acts": {&v1alpha1.RedisFaultStatus{StartTime: instant(0), Holding: new(true), Targets: []v1alpha1.FaultTarget{{Pod: "redis-0"}}},
			true, false, v1alpha1.ReasonWaitingForFault},
		"another one acts elsewhere": {&v1alpha1.RedisFaultStatus{StartTime: instant(0), Holding: new(true), Targets: []v1alpha1.FaultTarget{{Pod: "redis-1"}}},
			false, false, v1alpha1.ReasonInvalidSpec},
		"another one was reverted since":  {&v1alpha1.RedisFaultStatus{StartTime: instant(0), RevertedAt: instant(time.Second)}, false, true, ""},
		"another one was reverted before": {&v1alpha1.RedisFaultStatus{StartTime: instant(-time.Minute), RevertedAt: instant(-time.Second)}, false, false, v1alpha1.ReasonInvalidSpec},
	} {
		t.Run(name, func(t *testing.T) {
			own := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own", UID: "own"}}
			objects := []client.Object{own}
			if c.other != nil {
				objects = append(objects, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "other"}, Status: *c.other})
			}
			r := &Reconciler{APIReader: apitest.Paged(fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(objects...).Build())}
			s := &scope{fault: own, now: selected}
			wanted := lock.Wanted(own, s.traits, []v1alpha1.FaultTarget{{Pod: "redis-0"}}, nil, selected)
			o := r.reconsider(t.Context(), s, wanted, outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Lasting: true}, ended: true, failed: true})
			if o.again != c.again || o.ended != (c.reason == v1alpha1.ReasonInvalidSpec) || (own.Status.Waiting != nil) != c.waits || c.reason != "" && o.problem.Reason != c.reason {
				t.Errorf("%+v, problem %+v, waiting %+v", o, o.problem, own.Status.Waiting)
			}
		})
	}
}
