// Package rights has the words for what somebody must be allowed to do in Kubernetes: whoever
// creates a fault, a load test, an experiment or a schedule, as that is what the object does there,
// and the operator. Kinds of faults declare theirs with these (internal/fault/declared);
// hack/tools/rights generates the admission policies and the roles.
package rights

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Right is a verb on a resource.
type Right struct {
	Verb     string
	Group    string // "" = the core group
	Resource string // with its subresource, as in pods/exec
	Cluster  bool   // the resource is cluster-scoped
	// of a resource in namespaces: in all of them
	Everywhere bool
}

// Anywhere reports whether the right does not depend on a namespace.
func (r Right) Anywhere() bool {
	return r.Cluster || r.Everywhere
}

// String is the right as messages name it, such as "patch statefulsets.apps".
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Everywhere {
		text += " in all namespaces"
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

// String is the need as messages name it, with its alternative.
func (n Need) String() string {
	if n.Or != nil {
		return n.Right.String() + " or " + n.Or.String()
	}
	return n.Right.String()
}

// Except is the need where an action has not that setting.
func (n Need) Except(s *Setting) Need {
	n.Unless = s
	return n
}

// Grant is what the operator may do with a resource.
type Grant struct {
	Group    string // "" = the core group
	Resource string
	Cluster  bool // the resource is cluster-scoped
	Verbs    []string
	Unless   *Setting // with which it is not needed; nil = always needed
	// the component of the installation whose kinds are granted it, too; "" = the kind's own role
	Component string
}

// By is the grant where a component of the installation has it.
func (g Grant) By(component string) Grant {
	g.Component = component
	return g
}

// Except is the grant where an action has not that setting.
func (g Grant) Except(s *Setting) Grant {
	g.Unless = s
	return g
}

// Setting is a value of a field of a fault's action.
type Setting struct {
	Field   []string // its path below action
	Default string
	Value   string
}

// Word names the setting among the variants of a kind.
func (s Setting) Word() string {
	return cmp.Or(s.Value, "without "+s.Field[len(s.Field)-1])
}

// Holds is the CEL expression whether an action, such as object.spec.action, has the setting.
func (s Setting) Holds(action string) string {
	return fmt.Sprintf("%s.?%s.orValue('%s') == '%s'", action, strings.Join(s.Field, ".?"), s.Default,
		s.Value)
}

// Otherwise says of what is needed without the setting when that is: "not with
// volumeAttachDelay.keepAway: None", "only with drain.node".
func (s Setting) Otherwise() string {
	field := strings.Join(s.Field, ".")
	if s.Value == "" {
		return "only with " + field
	}
	return fmt.Sprintf("not with %s: %s", field, s.Value)
}

// In reports whether an action has the setting.
func (s Setting) In(action *v1alpha1.Action) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(action)
	if err != nil { // an action can be encoded
		return false
	}
	value, _, _ := unstructured.NestedString(content, s.Field...)
	return cmp.Or(value, s.Default) == s.Value
}
