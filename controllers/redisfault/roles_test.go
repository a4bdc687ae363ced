package redisfault

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/timeline"
)

// endedPrimaryOf is a scope of a fault that has killed the primary redis-0 of three servers, of which the load has
// recovered.
func endedPrimaryOf(t *testing.T, now time.Time, roles ...topology.Role) (*Reconciler, *scope.Fault) {
	w := faulttest.NewWorld(t)
	for i, name := range []string{"redis-0", "redis-1", "redis-2"} {
		w.Pod(name, "u-"+name, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}[i], roles[i], nil)
	}
	f := &v1alpha1.RedisFault{}
	f.Status = v1alpha1.RedisFaultStatus{
		InjectedAt: new(metav1.NewMicroTime(now.Add(-time.Minute))),
		Targets: []v1alpha1.FaultTarget{
			{Pod: "redis-0", UID: "u0", Role: v1alpha1.RolePrimary, InjectedAt: new(metav1.NewMicroTime(now.Add(-time.Minute)))},
		},
	}
	pods := faulttest.ByPods(map[string]string{"app": "redis"})
	s := &scope.Fault{
		Fault:  f,
		Target: pods,
		Deps:   faulttest.On(w.Deps(), pods),
		Traits: contract.Traits{EndsServer: true},
		Seen: lifecycle.Fault{
			Injection: lifecycle.Injection{InjectedAny: true},
			Recovery:  lifecycle.Recovery{Settled: true},
		},
	}
	return &Reconciler{
		Term:    faultrun.NewRegistry(nil).NewTerm(),
		Clock:   testingclock.NewFakePassiveClock(now),
		Servers: w.Servers,
	}, s
}

// A fault of which the load has recovered is observed until the roles have settled: none has changed for 10 s, and
// there is one primary.
func TestRolesExtendTheObservation(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := []topology.Role{topology.Primary, topology.Replica, topology.Replica}
	two := []topology.Role{topology.Primary, topology.Primary, topology.Replica}
	for name, tc := range map[string]struct {
		roles []topology.Role
		event string
		ago   time.Duration
		open  string // "" = it is settled
	}{
		"nothing has changed": {roles: one},
		"a switch a moment ago": {
			roles: one,
			event: contract.EventSwitched,
			ago:   4 * time.Second,
			open:  "changed a moment ago",
		},
		"a promotion a moment ago": {
			roles: one,
			event: contract.EventPromoted,
			ago:   9 * time.Second,
			open:  "changed a moment ago",
		},
		"a failover may follow": {
			roles: one,
			event: contract.EventObjectivelyDown,
			ago:   time.Second,
			open:  "changed a moment ago",
		},
		"a switch long ago":          {roles: one, event: contract.EventSwitched, ago: 11 * time.Second},
		"by the clock of a sentinel": {roles: one, event: contract.EventSwitched, ago: -time.Hour},
		"something else":             {roles: one, event: timeline.Ready, ago: time.Second},
		"two primaries":              {roles: two, open: "redis-0 and redis-1 report the role primary"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := endedPrimaryOf(t, now, tc.roles...)
			if tc.event != "" {
				timeline.Append(&s.Fault.Status, now.Add(-tc.ago), tc.event, "sentinels", "")
			}
			r.observeRoles(t.Context(), s)
			if s.Seen.Settled != (tc.open == "") || !strings.Contains(s.RolesOpen, tc.open) {
				t.Errorf("settled %t: %s", s.Seen.Settled, s.RolesOpen)
			}
		})
	}
}

// Whether the primary is the same again is said only where it is decided; what is not at the end is an event, and a
// doubt about a recovery.
func TestUndecidedRolesAreSaid(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		roles     []topology.Role
		recovered bool
		event     string
		doubt     bool
	}{
		{[]topology.Role{topology.Primary, topology.Replica, topology.Replica}, true, fault.EventNoFailover, false},
		{[]topology.Role{topology.Primary, topology.Primary, topology.Replica}, true, fault.EventTwoPrimaries, true},
		{[]topology.Role{topology.Primary, topology.Primary, topology.Replica}, false, fault.EventTwoPrimaries, false},
	} {
		_, s := endedPrimaryOf(t, now, tc.roles...)
		recordRoleChanges(t.Context(), s, now)
		if len(s.Fault.Status.Timeline) != 1 || s.Fault.Status.Timeline[0].Event != tc.event {
			t.Errorf("%+v: %+v", tc, s.Fault.Status.Timeline)
		}
		s.Impact = &impact.Impact{Recovered: tc.recovered}
		s.Measured = result.NewFault(s.Impact, result.FaultInput{})
		s.Seen.Load = lifecycle.LoadRunning
		figures.SetImpact(s, true)
		if doubts := slices.ContainsFunc(s.Fault.Status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == fault.EventTwoPrimaries
		}); doubts != tc.doubt {
			t.Errorf("%+v: %+v", tc, s.Fault.Status.Impact.Doubts)
		}
	}
}
