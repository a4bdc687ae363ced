// Package rights is the table of what whoever creates a fault, a load test or an experiment must be allowed to do in Kubernetes, which is what the object does
// there, and the table of what the operator must be allowed for each kind of fault.
// hack/tools/rights generates the admission policies from the first, the roles from the second.
package rights

import (
	"fmt"
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
	Or     *Right   // the alternative
	Unless *Setting // with which the right is not needed; nil = always needed
}

// Setting is a value of a field of a fault's action.
type Setting struct {
	Field   []string // its path below action
	Default string
	Value   string
}

// Holds is the CEL expression whether an action, such as object.spec.action, has the setting.
func (s Setting) Holds(action string) string {
	return fmt.Sprintf("%s.?%s.orValue('%s') == '%s'", action, strings.Join(s.Field, ".?"), s.Default, s.Value)
}

// Fault is a kind of fault by one engine.
type Fault struct {
	Type   v1alpha1.FaultType
	Engine v1alpha1.Engine
	Needs  []Need
}
