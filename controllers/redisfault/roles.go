package redisfault

import (
	"context"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
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
func (r *Reconciler) observeRoles(ctx context.Context, s *scope) {
	status := &s.fault.Status
	if !s.seen.Settled || status.SettledTime != nil || s.seen.Setting {
		return
	}
	if since := r.Clock.Now().Sub(lastRoleChange(status)); since >= 0 && since < sustainFor {
		s.seen.Settled, s.rolesOpen = false, "the roles changed a moment ago"
		return
	}
	if !s.endedPrimary() {
		return
	}
	_ = r.connect(ctx, s) // what is missing shows in the evidence
	if after := s.rolesAfter(ctx); after.Open != "" {
		s.seen.Settled, s.rolesOpen = false, after.Open
	}
}

// lastRoleChange is when roles changed last, as far as the timeline shows; zero = never.
func lastRoleChange(status *v1alpha1.RedisFaultStatus) time.Time {
	var last time.Time
	for i := range status.Timeline {
		if e := &status.Timeline[i]; slices.Contains(roleChanges, e.Event) && e.At.After(last) {
			last = e.At.Time
		}
	}
	return last
}

// endedPrimary reports whether the fault has ended the server of a primary.
func (s *scope) endedPrimary() bool {
	return s.traits.EndsServer && s.target != nil && s.seen.InjectedAny &&
		slices.ContainsFunc(s.fault.Status.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.Role == v1alpha1.RolePrimary
		})
}

func (s *scope) rolesAfter(ctx context.Context) fault.After {
	ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
	defer cancel()
	return fault.RolesAfter(ctx, s.deps.Redis, s.fault.Status.Targets)
}

// recordRoleChanges adds to the timeline, for every primary that was ended, which server is the
// primary now, or that this is not decided.
func (s *scope) recordRoleChanges(ctx context.Context, now time.Time) {
	if !s.endedPrimary() {
		return
	}
	after := s.rolesAfter(ctx)
	for _, seen := range after.Seen {
		timeline.Append(&s.fault.Status, now, seen.Event, seen.Object, seen.Message)
	}
	if s.rolesOpen = after.Open; after.Open != "" {
		timeline.Append(&s.fault.Status, now, fault.EventTwoPrimaries, "servers", after.Open)
	}
}

// rolesMessage is what a fault still waits for after the recovery of its load; "" = nothing.
func (s *scope) rolesMessage() string {
	if s.rolesOpen == "" {
		return ""
	}
	return "; waiting until it is decided which server is the primary: " + s.rolesOpen
}
