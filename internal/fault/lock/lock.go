// Package lock decides which faults may act at the same time: one on a server, and none on a server
// whose workload, or whose node, another one changes.
package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Claim is what a fault acts on, or waits to act on.
type Claim struct {
	Fault     types.NamespacedName
	UID       types.UID
	Since     time.Time // when it was recorded, or began to wait
	Attempted bool      // its injection may have begun
	Pods      []string
	Workloads []string // controllers of its pods, such as StatefulSet/redis
	// it changes the workloads: their size, their template, or the roles in them
	Whole bool
	Nodes []string // that it taints
	// a Deployment that it scales, as NAMESPACE/NAME; "" = none
	Deployment string
	Limit      v1alpha1.PolicyLimit // that it waits for; "" = none
	Load       string               // the load test that it refers to; "" = it has a load of its own
	KeepsDown  bool                 // it ends the replacements of its pods as well
	// it is a setting that is in force: faults on the same load act beside it
	InForce bool
	Beside  []string // faults of its namespace that it acts beside
	// the UIDs of these; empty = nothing of it is recorded
	BesideUIDs []string
	Changes    []string // the settings that it changes, else its type
	Rolls      bool     // it changes the pod template
	Removes    bool     // it removes servers
	Silent     bool     // it keeps servers from serving, if only while they restart
}

// Held is the claim of a fault that acts: from the record of its targets to their revert. It is
// false for other faults.
func Held(f *v1alpha1.RedisFault, traits contract.Traits) (Claim, bool) {
	status := &f.Status
	if status.Holding == nil || !*status.Holding || status.StartTime == nil {
		return Claim{}, false
	}
	c := claimOf(f, traits, status.Targets, status.Workloads, status.Nodes)
	c.Since = status.StartTime.Time
	for i := range status.Targets {
		c.Attempted = c.Attempted || status.Targets[i].Attempts > 0 || status.Targets[i].InjectedAt != nil
	}
	return c, true
}

// Wanted is the claim of a fault on targets that it does not hold yet.
func Wanted(
	f *v1alpha1.RedisFault, traits contract.Traits, targets []v1alpha1.FaultTarget,
	workloads, nodes []string, since time.Time,
) Claim {
	c := claimOf(f, traits, targets, workloads, nodes)
	c.Since = since
	return c
}

// Waiting is the claim of a fault that waits for others. It is false for a fault that does not, or
// not any more.
func Waiting(f *v1alpha1.RedisFault) (Claim, bool) {
	w := f.Status.Waiting
	if w == nil || f.Status.StartTime != nil {
		return Claim{}, false
	}
	c := named(f)
	c.Since = w.Since.Time
	c.Pods = w.Pods
	c.Workloads = w.Workloads
	c.Whole = w.Whole
	c.Nodes = w.Nodes
	c.Deployment = w.Deployment
	c.Limit = w.Limit
	return c, true
}

// named is the claim of a fault without what it acts on.
func named(f *v1alpha1.RedisFault) Claim {
	c := Claim{
		Fault:   types.NamespacedName{Namespace: f.Namespace, Name: f.Name},
		UID:     f.UID,
		InForce: InForce(f),
		Removes: f.Spec.Action.Removes(),
		Beside:  f.Spec.Beside,

		BesideUIDs: f.Status.BesideUIDs,
	}
	if f.Spec.LoadTestRef != nil {
		c.Load = f.Spec.LoadTestRef.Name
	}
	c.Changes = f.Spec.Action.Changes()
	c.KeepsDown = f.Spec.KeepsDown()
	return c
}

func claimOf(
	f *v1alpha1.RedisFault, traits contract.Traits, targets []v1alpha1.FaultTarget,
	workloads, nodes []string,
) Claim {
	c := named(f)
	if d := traits.Deployment; d.Name != "" {
		d.Namespace = cmp.Or(d.Namespace, f.Namespace)
		c.Deployment = d.String()
	}
	if traits.Apart {
		return c
	}
	c.Rolls = traits.RollsPods
	c.Silent = traits.Silences || traits.EndsServer || traits.RollsPods
	c.Workloads, c.Whole, c.Nodes = workloads, traits.Whole, slices.Clone(nodes)
	for i := range targets {
		c.Pods = append(c.Pods, targets[i].Pod)
		node := targets[i].Node
		if traits.Taints && node != "" && !slices.Contains(c.Nodes, node) {
			c.Nodes = append(c.Nodes, node)
		}
	}
	return c
}

// Contested is what two faults cannot act on at the same time; "" if they can act.
func Contested(a, b Claim) string {
	if beside(a, b) {
		return ""
	}
	return shared(a, b)
}

// shared is what two faults both act on; "" = nothing.
func shared(a, b Claim) string {
	if a.UID == b.UID {
		return ""
	}
	if node := common(a.Nodes, b.Nodes); node != "" {
		return "node " + node
	}
	if a.Deployment != "" && a.Deployment == b.Deployment {
		return "Deployment " + a.Deployment
	}
	if a.Fault.Namespace != b.Fault.Namespace {
		return ""
	}
	if pod := common(a.Pods, b.Pods); pod != "" {
		return "pod " + pod
	}
	if a.Whole || b.Whole {
		return common(a.Workloads, b.Workloads)
	}
	if a.KeepsDown && b.KeepsDown {
		return common(renamed(a.Workloads), renamed(b.Workloads))
	}
	return ""
}

// renamed are the controllers that give each pod a new name: nobody could tell the replacements of
// one fault's pods from those of another one's.
func renamed(workloads []string) []string {
	return slices.DeleteFunc(slices.Clone(workloads), func(w string) bool {
		return strings.HasPrefix(w,
			"StatefulSet/")
	})
}

func common(a, b []string) string {
	for _, name := range a {
		if slices.Contains(b, name) {
			return name
		}
	}
	return ""
}

// Before orders claims: the one that was made first, else the one of the first name.
func Before(a, b Claim) bool {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) < 0
}

// Blocker is why a fault cannot act now, and the fault that it waits for: one that holds what it
// wants, or one that has waited for longer, unless that one waits for a fault beside which this one
// acts, such as a setting of its load, which is in force until the load has ended. It returns false
// if it can act.
func Blocker(wanted Claim, held, waiting []Claim) (other Claim, on string, blocked bool) {
	for _, other := range held {
		if on := Contested(wanted, other); on != "" {
			return other, on, true
		}
	}
	for _, other := range waiting {
		on := Contested(wanted, other)
		if on != "" && Before(other, wanted) && !waitsForPartner(other, wanted, held) {
			return other, on, true
		}
	}
	return Claim{}, "", false
}

// Yields reports whether a fault that was recorded, and that has injected nothing, yields to
// another one that was recorded at the same time. Of two such faults exactly one does; the other
// one waits for that.
func Yields(own, other Claim) bool {
	return other.Attempted || Before(other, own)
}

// Message describes a wait.
func Message(wanted, other Claim, on string) string {
	return fmt.Sprintf("waiting for RedisFault %s, which acts on %s",
		NameOf(other.Fault, wanted.Fault.Namespace), on)
}

// NameOf is a fault's name for a reader in a namespace.
func NameOf(fault types.NamespacedName, within string) string {
	if fault.Namespace == within {
		return fault.Name
	}
	return fault.String()
}
