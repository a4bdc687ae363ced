package redisfault

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/timeline"
)

// The reconcile that injects does not read the pods: their absence must not be recorded as a deletion.
func TestTimelineOfAReconcileThatReadNoPods(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	target := v1alpha1.FaultTarget{Pod: "redis-0", UID: "u1", InjectedAt: &metav1.MicroTime{Time: t0}}
	alive := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redis-0", UID: "u1"}}
	cases := map[string]struct {
		read    bool
		pods    []corev1.Pod
		deleted bool
	}{
		"not read":          {false, nil, false},
		"read, still there": {true, []corev1.Pod{alive}, false},
		"read, deleted":     {true, nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kill"}}
			r := &Reconciler{
				Client: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(fault).
					WithObjects(fault.DeepCopy()).Build(),
				Recorder: events.NewFakeRecorder(16),
				Clock:    testingclock.NewFakePassiveClock(t0.Add(time.Second)),
				Runs:     runs.NewRegistry(),
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(fault), fault); err != nil {
				t.Fatal(err)
			}
			s := &scope.Fault{Fault: fault, Before: fault.DeepCopy(), FoundPods: scope.FoundPods{PodsRead: c.read, Pods: c.pods}}
			fault.Status.InjectedAt, fault.Status.Targets = target.InjectedAt, []v1alpha1.FaultTarget{target}
			if err := r.report(t.Context(), s,
				lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultInject, Reason: v1alpha1.ReasonInjecting},
				state.Outcome{}); err != nil {
				t.Fatal(err)
			}
			if got := slices.ContainsFunc(fault.Status.Timeline, func(e v1alpha1.TimelineEvent) bool {
				return e.Event == timeline.Deleted
			}); got != c.deleted {
				t.Errorf("PodDeleted in the timeline: %v, want %v: %+v", got, c.deleted, fault.Status.Timeline)
			}
		})
	}
}
