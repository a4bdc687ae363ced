// Package rights is the table of what each kind of fault does in Kubernetes: what the operator must be allowed for it, and what whoever creates it
// must be allowed. hack/tools/rights generates the roles and the admission policies from it.
package rights

import (
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Right is a verb on a resource.
type Right struct {
	Verb     string
	Group    string // "" = the core group
	Resource string // with its subresource, as in pods/exec
	Cluster  bool   // the resource is cluster-scoped
}

// String is the right as messages name it, such as "patch statefulsets.apps".
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	return text
}

// Parts returns the resource and its subresource.
func (r Right) Parts() (resource, subresource string) {
	resource, subresource, _ = strings.Cut(r.Resource, "/")
	return resource, subresource
}

// Need is a right that a kind of fault needs.
type Need struct {
	Right
	Or     *Right     // the alternative; only of users
	Unless *Exception // nil = always
}

// Exception is a setting of a fault with which it does not need a right.
type Exception struct {
	Holds func(*v1alpha1.RedisFaultSpec) bool
	Else  string // CEL on the object: the setting is another one
}

// Fault is a kind of fault by one engine.
type Fault struct {
	Type     v1alpha1.FaultType
	Engine   v1alpha1.Engine
	User     []Need // of whoever creates it
	Operator []Need // besides what every load test and every fault needs
}

// Name identifies the fault in names of roles, such as podkill.
func (f Fault) Name() string {
	name := strings.ToLower(string(f.Type))
	if f.Type == v1alpha1.FaultPodKill && f.Engine == v1alpha1.EngineChaosMesh {
		name += "-chaosmesh"
	}
	return name
}

// Of returns the entry of a spec's type and engine; false for a type that this version does not know.
func Of(spec *v1alpha1.RedisFaultSpec) (Fault, bool) {
	engine := spec.Engine
	if engine == "" {
		engine = v1alpha1.EngineNative
	}
	for _, f := range Faults {
		if f.Type == spec.Action.Type && f.Engine == engine {
			return f, true
		}
	}
	return Fault{}, false
}

// OfOperator returns what the operator must be allowed for a fault, besides what every fault needs.
func OfOperator(spec *v1alpha1.RedisFaultSpec) []Right {
	entry, _ := Of(spec)
	var needed []Right
	for _, need := range entry.Operator {
		if need.Unless == nil || !need.Unless.Holds(spec) {
			needed = append(needed, need.Right)
		}
	}
	return needed
}
