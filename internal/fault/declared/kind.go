// Package declared declares the kinds of faults: all that the rest of Redquake knows of them.
// Roles, admission policies, checks, settings of experiments and reports follow from the
// declarations. It is pure, and links no client: programs that only read use it, too. How a kind
// breaks and reverts is in its own package beside this one.
package declared

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/rights"
)

// Kind declares a kind of fault by one engine.
type Kind struct {
	Type   v1alpha1.FaultType
	Engine v1alpha1.Engine

	Doing string        // what it does, at the begin of a sentence; %s is its target
	Needs []rights.Need // what whoever creates it must be allowed
	// what the operator must be allowed, its revert included: beside what it needs for every object;
	// see config/rbac/role.yaml
	Grants []rights.Grant
	// the member of a setting of an experiment's matrix that it puts into force; "" = none
	Member string

	Role string // its name in names of roles and files; "" = the type in lower case
	// the component of the installation that grants it its rights, without which nothing of it begins;
	// "" = the default installation does
	Component string
	Moves     bool // the pods of its targets move to another node
	Keeps     bool // it loses no acknowledged write unless objectives.maxLostWrites permits that
	Attached  bool // it needs a volume that is attached to a node
	External  bool // somebody or something else breaks Redis, and marks when
}

// Name of the kind in names of roles and files, such as podkill or podkill-chaosmesh.
func (k *Kind) Name() string {
	return cmp.Or(k.Role, strings.ToLower(string(k.Type)))
}

// RoleName is the name of the role with the kind's grants on the resources of a namespace, or on
// cluster-scoped ones, without the installation's prefix.
func (k *Kind) RoleName(cluster bool) string {
	if cluster {
		return "cluster-" + k.Name() + "-role"
	}
	return "manager-" + k.Name() + "-role"
}

// Granting is what grants a right on cluster-scoped resources that the kind needs, in words: its own
// ClusterRole, or a component of the installation.
func (k *Kind) Granting() string {
	for _, g := range k.Grants {
		if g.Cluster && g.Component != "" {
			return fmt.Sprintf("switch on the component %s of the installation", g.Component)
		}
	}
	return fmt.Sprintf("bind the ClusterRole %s to its ServiceAccount", rights.Prefix+k.RoleName(true))
}

// On are the grants of the kind's own roles on cluster-scoped resources, or those on the resources
// of a namespace.
func (k *Kind) On(cluster bool) []rights.Grant {
	return slices.DeleteFunc(slices.Clone(k.Grants), func(g rights.Grant) bool {
		return g.Cluster != cluster || g.Component != ""
	})
}

// Rights are what the operator must be allowed for a fault with this action.
func (k *Kind) Rights(action *v1alpha1.Action) []rights.Right {
	var all []rights.Right
	for _, g := range k.Grants {
		if g.Unless != nil && g.Unless.In(action) {
			continue
		}
		for _, verb := range g.Verbs {
			all = append(all, rights.Right{
				Verb:     verb,
				Group:    g.Group,
				Resource: g.Resource,
				Cluster:  g.Cluster,
			})
		}
	}
	return all
}

// Of finds the kind of a fault; nil = there is none.
func Of(spec *v1alpha1.RedisFaultSpec) *Kind {
	engine := cmp.Or(spec.Engine, v1alpha1.EngineNative)
	if i := slices.IndexFunc(All, func(k Kind) bool {
		return k.Type == spec.Action.Type && k.Engine == engine
	}); i >= 0 {
		return &All[i]
	}
	return nil
}

// IsExternal reports whether something else breaks Redis, and marks when.
func IsExternal(spec *v1alpha1.RedisFaultSpec) bool {
	kind := Of(spec)
	return kind != nil && kind.External
}

// Types are the types of the kinds, by name.
func Types() []v1alpha1.FaultType {
	var types []v1alpha1.FaultType
	for _, k := range All {
		types = append(types, k.Type)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// SwitchedOn returns the types that a comma-separated list selects. As in the lists of Kubernetes'
// own managers, * is all that are on by default, a name adds a type, and a name after - removes
// one. Types of which each kind belongs to a component are not on by default.
func SwitchedOn(list string) ([]v1alpha1.FaultType, error) {
	if list == "" {
		return []v1alpha1.FaultType{}, nil
	}
	on, off := map[v1alpha1.FaultType]bool{}, map[v1alpha1.FaultType]bool{}
	known := Types()
	for entry := range strings.SplitSeq(list, ",") {
		name, removed := strings.CutPrefix(strings.TrimSpace(entry), "-")
		typ := v1alpha1.FaultType(name)
		switch {
		case name == "*" && !removed:
			for _, typ := range known {
				on[typ] = on[typ] || !optional(typ)
			}
		case !slices.Contains(known, typ):
			return nil, fmt.Errorf("%q is no type of fault; there are %s", name, joined(known))
		case removed:
			off[typ] = true
		default:
			on[typ] = true
		}
	}
	return slices.DeleteFunc(known, func(typ v1alpha1.FaultType) bool {
		return !on[typ] ||
			off[typ]
	}), nil
}

// optional reports whether each kind of a type belongs to a component.
func optional(typ v1alpha1.FaultType) bool {
	return !slices.ContainsFunc(All, func(k Kind) bool { return k.Type == typ && k.Component == "" })
}

func joined(types []v1alpha1.FaultType) string {
	names := make([]string, len(types))
	for i, typ := range types {
		names[i] = string(typ)
	}
	return strings.Join(names, ", ")
}
