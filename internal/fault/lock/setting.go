package lock

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
)

// InForce reports whether a fault is a setting that is complete on all targets, and whose end has
// not begun: faults on the same load act beside it.
func InForce(f *v1alpha1.RedisFault) bool {
	status := &f.Status
	if !f.Spec.Setting || f.Spec.Abort || f.DeletionTimestamp != nil || status.StartTime == nil ||
		len(status.Targets) == 0 || status.HeldUntil != nil || status.RevertingSince != nil {
		return false
	}
	return !slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool {
		return t.InjectedAt == nil || t.ActiveAt == nil
	})
}

// beside reports whether one of two faults is a setting of their load that is in force.
func beside(a, b Claim) bool {
	return a.Load != "" && a.Load == b.Load && a.Fault.Namespace == b.Fault.Namespace &&
		(a.Beside || b.Beside)
}

// Clash is why a fault can never act beside a setting of its load that is in force: both change the
// same, and whichever is reverted last would restore what the other one had set. It is "" if it
// can.
func Clash(wanted, held Claim) string {
	on, what := shared(wanted, held), common(wanted.Changes, held.Changes)
	if !held.Beside || !beside(wanted, held) || on == "" || what == "" {
		return ""
	}
	return fmt.Sprintf(
		"RedisFault %s, a setting of RedisLoadTest %s, changes %s of %s already, for as long as the "+
			"load runs", held.Fault.Name, held.Load, what, on)
}

// waitsForSetting reports whether a fault waits for a setting beside which another one acts: that
// must not wait for the first.
func waitsForSetting(waiting, wanted Claim, held []Claim) bool {
	return slices.ContainsFunc(held, func(h Claim) bool {
		return h.Beside && beside(h, wanted) &&
			Contested(waiting, h) != ""
	})
}
