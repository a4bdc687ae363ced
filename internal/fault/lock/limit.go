package lock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/policy"
)

// Limit is a limit of the cluster's policy.
type Limit policy.Limit

// concerns reports whether what a fault does is subject to the limit at all.
func (l Limit) concerns(c Claim) bool {
	return l.Of != v1alpha1.LimitTaintedNodes || len(c.Nodes) > 0
}

// counted are the claims that count beside one, without itself, and without the settings of its
// load that are in force.
func (l Limit) counted(own Claim, claims []Claim) []Claim {
	var found []Claim
	for _, c := range claims {
		if c.UID != own.UID && !(c.InForce && ofSetting(c, own)) && l.concerns(c) &&
			(l.Of != v1alpha1.LimitNamespaceFaults || c.Fault.Namespace == own.Fault.Namespace) {
			found = append(found, c)
		}
	}
	return found
}

// exceeded reports whether claims together are beyond the limit.
func (l Limit) exceeded(claims ...Claim) bool {
	if l.Of != v1alpha1.LimitTaintedNodes {
		return len(claims) > l.Max
	}
	return len(nodesOf(claims)) > l.Max
}

func nodesOf(claims []Claim) []string {
	var nodes []string
	for _, c := range claims {
		for _, node := range c.Nodes {
			if !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// Never reports whether a fault is beyond the limit on its own, for a reason that lies in the
// fault: waiting does not help.
func (l Limit) Never(wanted Claim) bool {
	return l.Of == v1alpha1.LimitTaintedNodes && l.exceeded(wanted)
}

// Full reports whether a fault has to wait because of the limit, and why: of what the others hold,
// and of what those that have waited for longer because of the same limit will hold.
func (l Limit) Full(wanted Claim, held, waiting []Claim) (why string, full bool) {
	if !l.concerns(wanted) {
		return "", false
	}
	acting := l.counted(wanted, held)
	var ahead []Claim
	for _, c := range l.counted(wanted, waiting) {
		if c.Limit == l.Of && Before(c, wanted) && !l.heldUp(c, wanted, held) {
			ahead = append(ahead, c)
		}
	}
	if !l.exceeded(append(slices.Concat(acting, ahead), wanted)...) {
		return "", false
	}
	return l.message(wanted, acting, ahead), true
}

// heldUp reports whether a fault waits for the limit as a setting counts for it beside which
// another one acts: that must not wait for the first.
func (l Limit) heldUp(waiting, wanted Claim, held []Claim) bool {
	counts := slices.ContainsFunc(held, func(h Claim) bool {
		return h.InForce && ofSetting(h, wanted) && !ofSetting(h, waiting)
	})
	return counts && l.exceeded(append(l.counted(waiting, held), waiting)...)
}

// Turn decides about a fault that was recorded, and that has injected nothing: whether it can act
// beside the others that are recorded, else whether it yields. Of faults that were recorded at
// the same time, and that are beyond the limit together, at least one does; the others wait for
// that.
func (l Limit) Turn(own Claim, held []Claim) (fits, yields bool) {
	others := l.counted(own, held)
	if !l.concerns(own) || !l.exceeded(append(slices.Clone(others), own)...) {
		return true, false
	}
	first := []Claim{own}
	for _, c := range others {
		if Yields(own, c) {
			first = append(first, c)
		}
	}
	return false, l.exceeded(first...)
}

// Beside is Full's explanation for a fault that yields.
func (l Limit) Beside(own Claim, held []Claim) string {
	return l.message(own, l.counted(own, held), nil)
}

// message describes a wait for a limit.
func (l Limit) message(wanted Claim, acting, ahead []Claim) string {
	text := fmt.Sprintf("%d of %d faults act", len(acting), l.Max)
	//exhaustive:enforce
	switch l.Of {
	case v1alpha1.LimitFaults:
	case v1alpha1.LimitNamespaceFaults:
		text = fmt.Sprintf("%d of %d faults act in namespace %s", len(acting), l.Max,
			wanted.Fault.Namespace)
	case v1alpha1.LimitTaintedNodes:
		text = fmt.Sprintf("faults have tainted %d of %d nodes", len(nodesOf(acting)), l.Max)
	}
	text += listed(": ", acting, wanted.Fault.Namespace) +
		listed("; longer waiting: ", ahead, wanted.Fault.Namespace)
	return fmt.Sprintf("%s (policy: %s)", text, l.Entry)
}

// mostNames is how many faults a message names.
const mostNames = 5

func listed(introduction string, claims []Claim, within string) string {
	if len(claims) == 0 {
		return ""
	}
	var names []string
	for _, c := range First(claims, mostNames) {
		name := NameOf(c.Fault, within)
		if len(c.Nodes) > 0 {
			name += " (node " + strings.Join(c.Nodes[:min(len(c.Nodes), mostNames)], ", ") + ")"
		}
		names = append(names, name)
	}
	if more := len(claims) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return introduction + strings.Join(names, ", ")
}

// First are the first n of claims.
func First(claims []Claim, n int) []Claim {
	sorted := slices.SortedFunc(slices.Values(claims), func(a, b Claim) int {
		if Before(a, b) {
			return -1
		}
		return 1
	})
	return sorted[:min(n, len(sorted))]
}
