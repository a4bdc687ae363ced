package redisfault

import (
	"context"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/timeline"
)

// A primary that was ended may return as the primary, serve, and be replaced seconds later, with
// the writes that it has taken: as long as roles change, a fault is observed.

// roleChanges are the events after which roles have changed, or are about to.
var roleChanges = []string{
	contract.EventObjectivelyDown, contract.EventElected,
	contract.EventPromoted, contract.EventSwitched,
}

// observeRoles determines whether the roles have settled, too, once the load has recovered.
func (r *Reconciler) observeRoles(ctx context.Context, s *scope.Fault) {
	status := &s.Fault.Status
	if !s.Seen.Settled || status.SettledTime != nil || s.Seen.Setting {
		return
	}
	since := r.Clock.Now().Sub(lastRoleChange(status))
	if since >= 0 && since < figures.SustainFor {
		s.Seen.Settled, s.RolesOpen = false, "the roles changed a moment ago"
		return
	}
	if !endedPrimary(s) {
		return
	}
	_ = r.reach().Connect(ctx, s) // what is missing shows in the evidence
	if after := rolesAfter(ctx, s); after.Open != "" {
		s.Seen.Settled, s.RolesOpen = false, after.Open
	}
}

// lastRoleChange is when roles changed last, as far as the timeline shows; zero = never.
func lastRoleChange(status *v1alpha1.RedisFaultStatus) time.Time {
	var last time.Time
	for i := range status.Timeline {
		e := &status.Timeline[i]
		if slices.Contains(roleChanges, e.Event) && e.At.After(last) {
			last = e.At.Time
		}
	}
	return last
}

// endedPrimary reports whether the fault has ended the server of a primary.
func endedPrimary(s *scope.Fault) bool {
	return s.Traits.EndsServer && s.Target != nil && s.Seen.InjectedAny &&
		slices.ContainsFunc(s.Fault.Status.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.Role == v1alpha1.RolePrimary
		})
}

func rolesAfter(ctx context.Context, s *scope.Fault) fault.After {
	ctx, cancel := context.WithTimeout(ctx, confine.AskTimeout)
	defer cancel()
	return fault.RolesAfter(ctx, s.Deps.Redis, s.Fault.Status.Targets)
}

// recordRoleChanges adds to the timeline, for every primary that was ended, which server is the
// primary now, or that this is not decided.
func recordRoleChanges(ctx context.Context, s *scope.Fault, now time.Time) {
	if !endedPrimary(s) {
		return
	}
	after := rolesAfter(ctx, s)
	for _, seen := range after.Seen {
		timeline.Append(&s.Fault.Status, now, seen.Event, seen.Object, seen.Message)
	}
	if s.RolesOpen = after.Open; after.Open != "" {
		timeline.Append(&s.Fault.Status, now, fault.EventTwoPrimaries, "servers", after.Open)
	}
}
