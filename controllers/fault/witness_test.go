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

// follower is an injector that saw things happen.
type follower struct {
	contract.Injector
	seen []contract.Sighting
}

func (f follower) Follow(context.Context, *v1alpha1.FaultTarget) []contract.Sighting { return f.seen }

// What was seen before the injection, from an attempt on that came to nothing, is none of the fault's doing. An event of the cluster bears whole
// seconds: the one in which the fault was injected may begin before it.
func TestTimelineTellsNothingFromBeforeTheInjection(t *testing.T) {
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
	var told []string
	for _, e := range s.fault.Status.Timeline {
		told = append(told, e.Event)
	}
	slices.Sort(told)
	if !slices.Equal(told, []string{"After", "InTheSecond", "With"}) {
		t.Errorf("told of %v", told)
	}
}
