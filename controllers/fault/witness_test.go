package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// follower is an injector with given observations.
type follower struct {
	contract.Injector
	seen []contract.Sighting
}

func (f follower) Follow(context.Context, *v1alpha1.FaultTarget) []contract.Sighting { return f.seen }

// Observations before the injection, during a failed attempt, are not effects of the fault. Events of the cluster have whole seconds: the second of
// the injection begins before it.
func TestTimelineOmitsEventsBeforeTheInjection(t *testing.T) {
	injected := time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)
	s := &scope{fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{UID: "own"}}, injector: follower{seen: []contract.Sighting{
		{At: injected.Add(-6 * time.Second), Event: "Before"},
		{At: injected, Event: "With"},
		{At: injected.Truncate(time.Second), Coarse: true, Event: "InTheSecond"},
		{At: injected.Add(time.Millisecond), Event: "After"},
	}}}
	s.fault.Status.InjectedAt = &metav1.MicroTime{Time: injected}
	s.fault.Status.Targets = make([]v1alpha1.FaultTarget, 1)
	r := &Reconciler{Clock: testingclock.NewFakePassiveClock(injected.Add(time.Second))}
	r.recordSightings(t.Context(), s)
	var lines []string
	for _, e := range s.fault.Status.Timeline {
		lines = append(lines, e.Event)
	}
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"After", "InTheSecond", "With"}) {
		t.Errorf("timeline %v", lines)
	}
}

// A reconcile may inject while the manager stops: its witness would poll for ten minutes more.
func TestNoWitnessStartsOnceTheManagerStops(t *testing.T) {
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build(), Reverters: NewReverters(nil)}
	s := &scope{fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{UID: "own"}}}
	s.target = &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}
	s.deps = contract.Deps{Redis: target.Redis{Namespace: "ns", Spec: s.target}}
	watched := func() bool {
		_, found := r.witnesses.Load(s.fault.UID)
		return found
	}
	if r.startWitness(s); !watched() {
		t.Fatal("no witness of a fault that is injected")
	}
	if r.Close(); watched() {
		t.Error("a witness was not ended")
	}
	if r.startWitness(s); watched() {
		t.Error("a witness started after the end")
	}
}
