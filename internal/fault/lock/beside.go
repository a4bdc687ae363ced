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

// beside reports whether two faults act at the same time on whatever both act on: one is a setting
// of their load that is in force, or one names the other, and they can.
func beside(a, b Claim) bool {
	return ofSetting(a, b) || invited(a, b) && bothChange(a, b) == "" && !tooFew(a, b)
}

// ofSetting reports whether one of two faults is a setting of their load that is in force.
func ofSetting(a, b Claim) bool {
	return a.Load != "" && a.Load == b.Load && a.Fault.Namespace == b.Fault.Namespace &&
		(a.InForce || b.InForce)
}

// invited reports whether one of two faults names the other in spec.beside.
func invited(a, b Claim) bool {
	return a.Fault.Namespace == b.Fault.Namespace && (invites(a, b) || invites(b, a))
}

// invites reports whether a fault names another one, and has not recorded one of that name with
// another UID.
func invites(a, b Claim) bool {
	if len(a.BesideUIDs) > 0 {
		return slices.Contains(a.BesideUIDs, string(b.UID))
	}
	return slices.Contains(a.Beside, b.Fault.Name)
}

// bothChange is what two faults would both change where they act on the same: whichever is reverted
// last would restore what the other one had set. "" = nothing.
func bothChange(a, b Claim) string {
	if node := common(a.Nodes, b.Nodes); node != "" {
		return "the taint of node " + node
	}
	if a.Deployment != "" && a.Deployment == b.Deployment {
		return "the size of Deployment " + a.Deployment
	}
	if a.Rolls && b.Rolls {
		return "the pod template"
	}
	return common(a.Changes, b.Changes)
}

// tooFew reports whether one of two faults removes servers, and the other one keeps some from
// serving: which copies would be left is not known before.
func tooFew(a, b Claim) bool {
	return a.Removes && b.Silent || b.Removes && a.Silent
}

// Clash is why a fault can never act beside one that acts, although that is a setting of its load
// in force, or one names the other: both change the same. It is "" if it can.
func Clash(wanted, held Claim) string {
	on := shared(wanted, held)
	if on == "" {
		return ""
	}
	setting := held.InForce && ofSetting(wanted, held)
	if what := common(wanted.Changes, held.Changes); setting && what != "" {
		return fmt.Sprintf(
			"spec.action: RedisFault %s, a setting of RedisLoadTest %s, changes %s of %s already, for as "+
				"long as the load runs", held.Fault.Name, held.Load, what, on)
	}
	if !setting && invited(wanted, held) && tooFew(wanted, held) {
		return fmt.Sprintf(
			"spec.beside: of this fault and RedisFault %s one removes servers, and the other one keeps some from "+
				"serving, and both act on %s: the last copy might be among them. Without beside one acts after "+
				"the other", held.Fault.Name, on)
	}
	if what := bothChange(wanted, held); !setting && invited(wanted, held) && what != "" {
		return fmt.Sprintf(
			"spec.beside: RedisFault %s changes %s, too, and both act on %s: whichever is reverted last "+
				"would restore what the other one had set. Without beside one acts after the other",
			held.Fault.Name, what, on)
	}
	return ""
}

// waitsForPartner reports whether a fault waits for one beside which another one acts: that must
// not wait for the first.
func waitsForPartner(waiting, wanted Claim, held []Claim) bool {
	return slices.ContainsFunc(held, func(h Claim) bool {
		return beside(h, wanted) && Contested(waiting, h) != ""
	})
}
