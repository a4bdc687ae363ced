package redisfault

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// follower is an injector with given observations.
type follower struct {
	contract.Injector
	seen []contract.Sighting
}

func (f follower) Follow(context.Context, *v1alpha1.FaultTarget) []contract.Sighting { return f.seen }

// Observations before the injection, during a failed attempt, are not effects of the fault. Events of the cluster have
// whole seconds: the second of the injection begins before it.
func TestTimelineOmitsEventsBeforeTheInjection(t *testing.T) {
	injected := time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)
	s := &scope.Fault{
		Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{UID: "own"}},
		Injector: follower{seen: []contract.Sighting{
			{At: injected.Add(-6 * time.Second), Event: "Before"},
			{At: injected, Event: "With"},
			{At: injected.Truncate(time.Second), Coarse: true, Event: "InTheSecond"},
			{At: injected.Add(time.Millisecond), Event: "After"},
		}},
	}
	s.Fault.Status.InjectedAt = &metav1.MicroTime{Time: injected}
	s.Fault.Status.Targets = make([]v1alpha1.FaultTarget, 1)
	r := &Reconciler{
		Term:  faultrun.NewRegistry(nil).NewTerm(),
		Clock: testingclock.NewFakePassiveClock(injected.Add(time.Second)),
	}
	r.recordSightings(t.Context(), s)
	var lines []string
	for _, e := range s.Fault.Status.Timeline {
		lines = append(lines, e.Event)
	}
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"After", "InTheSecond", "With"}) {
		t.Errorf("timeline %v", lines)
	}
}

// A reconcile may inject while the manager stops: its witness would poll for ten minutes more, and the watch of its
// pods would last.
func TestNoWitnessStartsOnceTheManagerStops(t *testing.T) {
	r := &Reconciler{
		APIReader: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build(),
		Term:      faultrun.NewRegistry(nil).NewTerm(),
	}
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{UID: "own"}}}
	s.Target = &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}
	s.Deps = contract.Deps{Redis: target.Redis{Namespace: "ns", Spec: s.Target}}
	watched := func() (witness, pods bool) {
		session := r.Term.Find(s.Fault.UID)
		_, pods = session.Pods().Pods()
		return session.Watched(), pods
	}
	start := func() {
		r.watchPods(t.Context(), s)
		r.watchServers(s)
	}
	start()
	if witness, pods := watched(); !witness || !pods {
		t.Fatalf("a fault that is injected has a witness: %t, a watch of its pods: %t", witness, pods)
	}
	r.Close()
	if witness, pods := watched(); witness || pods {
		t.Errorf("after the end there is a witness: %t, a watch: %t", witness, pods)
	}
	start()
	if witness, pods := watched(); witness || pods {
		t.Errorf("started after the end: a witness: %t, a watch: %t", witness, pods)
	}
}
