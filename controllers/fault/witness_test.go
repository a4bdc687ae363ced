package fault

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
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
