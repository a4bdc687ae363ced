package redisfault

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
)

// An incomplete call is not repeated at once, although the write of the status triggers a reconcile.
func TestLastCalled(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := &Reconciler{Clock: clock, Term: faultrun.NewRegistry(clock).NewTerm()}
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{}}
	s.Fault.UID = "u"
	inject := lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultInject}
	lastCalled := func() time.Time { return r.Term.Find("u").LastCalled() }
	if at := lastCalled(); !at.IsZero() {
		t.Errorf("called at %s before the first call", at)
	}
	r.recordCall(s, inject, state.Outcome{})
	if at := lastCalled(); !at.Equal(clock.Now()) {
		t.Errorf("called at %s", at)
	}
	r.recordCall(s, inject, state.Outcome{Again: true})
	if at := lastCalled(); !at.IsZero() {
		t.Errorf("what is complete was called at %s", at)
	}
}
