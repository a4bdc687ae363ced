package rights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// SwitchedOn returns the types of faults that a comma-separated list selects. As in the lists of Kubernetes' own managers, * is all that are on by default, a
// name adds a type, and a name after - removes one. Types that taint nodes are not on by default: nodes belong to no namespace.
func SwitchedOn(list string) ([]v1alpha1.FaultType, error) {
	if list == "" {
		return []v1alpha1.FaultType{}, nil
	}
	on, off := map[v1alpha1.FaultType]bool{}, map[v1alpha1.FaultType]bool{}
	known := Types()
	for entry := range strings.SplitSeq(list, ",") {
		name, removed := strings.CutPrefix(strings.TrimSpace(entry), "-")
		kind := v1alpha1.FaultType(name)
		switch {
		case name == "*" && !removed:
			for _, kind := range known {
				on[kind] = on[kind] || !taints(kind)
			}
		case !slices.Contains(known, kind):
			return nil, fmt.Errorf("%q is no type of fault; there are %s", name, joined(known))
		case removed:
			off[kind] = true
		default:
			on[kind] = true
		}
	}
	return slices.DeleteFunc(known, func(kind v1alpha1.FaultType) bool { return !on[kind] || off[kind] }), nil
}

// Types are the types of faults, by name.
func Types() []v1alpha1.FaultType {
	var all []v1alpha1.FaultType
	for _, f := range Faults {
		all = append(all, f.Type)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// taints reports whether faults of a type taint nodes unless their settings say otherwise: those with rights on nodes do.
func taints(kind v1alpha1.FaultType) bool {
	return slices.ContainsFunc(Operations, func(o Operation) bool { return o.Type == kind && len(o.On(true)) > 0 })
}

func joined(types []v1alpha1.FaultType) string {
	names := make([]string, len(types))
	for i, kind := range types {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}
