package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/rights"
)

// leastMinor is the minor version of Kubernetes 1 with all that Redquake uses.
const leastMinor = 31

func (f *Facts) kubernetes() Check {
	c := Check{
		Name:     "kubernetes",
		Status:   OK,
		Detail:   f.Server,
		Required: true,
	}
	if f.Minor > 0 && f.Minor < leastMinor {
		c.Status = Missing
		c.Detail = fmt.Sprintf("%s: needs 1.%d, for selectable fields of custom resources", f.Server,
			leastMinor)
	}
	return c
}

func (f *Facts) kinds() Check {
	c := Check{
		Name:     "kinds",
		Status:   OK,
		Required: true,
	}
	var there, absent, other []string
	for _, kind := range kube.AllKinds {
		switch {
		case !slices.Contains(f.Served, kind.Resource):
			absent = append(absent, kind.Name)
		case slices.Contains(f.OtherSchemas, kind.Resource):
			other = append(other, kind.Name)
		}
		there = append(there, kind.Name)
	}
	switch {
	case len(absent) > 0:
		c.Status = Missing
		c.Detail = fmt.Sprintf("%s of %s: install config/crd, or the whole installation",
			strings.Join(absent, ", "), v1alpha1.GroupVersion)
	case len(other) > 0:
		c.Status = Note
		c.Detail = fmt.Sprintf("%s of %s: the CRDs are of another version than this program",
			strings.Join(other, ", "), v1alpha1.GroupVersion)
	default:
		c.Detail = strings.Join(there, ", ") + " of " + v1alpha1.GroupVersion.String()
		if f.SchemasUnasked != "" {
			c.Detail += "; whether they are those of this program is not known: " + f.SchemasUnasked
		}
	}
	return c
}

func (f *Facts) policies() Check {
	c := Check{
		Name:   "admission policies",
		Status: OK,
		Detail: fmt.Sprintf("%d ValidatingAdmissionPolicies", f.AdmissionPolicies),
	}
	switch {
	case f.AdmissionUnasked != "":
		c.Status, c.Detail = Unknown, f.AdmissionUnasked
	case f.AdmissionPolicies < len(kube.AllKinds): // there is one for each kind
		c.Status = Note
		c.Detail = fmt.Sprintf(
			"%d of %d ValidatingAdmissionPolicies: whoever may create a fault may do more than they may themselves (config/policy)",
			f.AdmissionPolicies, len(kube.AllKinds))
	}
	return c
}

func (f *Facts) operator() Check {
	c := Check{
		Name:     "operator",
		Status:   OK,
		Required: true,
	}
	switch {
	case f.ManagersUnasked != "":
		c.Status, c.Detail = Unknown, f.ManagersUnasked
	case len(f.Managers) == 0:
		c.Status = Missing
		c.Detail = "there is no Deployment with the labels app.kubernetes.io/name=redquake, " +
			"app.kubernetes.io/component=manager: make deploy installs it"
	default:
		m := &f.Managers[0]
		c.Detail = fmt.Sprintf("%s/%s: %d of %d ready, image %s", m.Namespace, m.Name, m.Ready, m.Wanted,
			m.Image)
		if m.Ready == 0 {
			c.Status = Missing
		} else if len(f.Managers) > 1 {
			c.Status = Note
			c.Detail += fmt.Sprintf("; there are %d: two must not watch the same namespace", len(f.Managers))
		}
	}
	return c
}

func (f *Facts) watched() Check {
	c := Check{
		Name:     "watched",
		Status:   OK,
		Required: true,
		Detail:   "the operator watches all namespaces",
	}
	if len(f.Managers) == 0 {
		c.Status, c.Detail = Unknown, "the operator is not known"
		return c
	}
	if names := f.Managers[0].Namespaces; len(names) > 0 {
		c.Detail = "the operator watches " + strings.Join(names, ", ")
		if !slices.Contains(names, f.Namespace) {
			c.Status = Missing
		}
	}
	return c
}

// user says whether the user may create something.
func (f *Facts) user(what string, needs ...rights.Right) Check {
	c := Check{
		Name:     "your rights: " + what,
		Status:   OK,
		Required: what == "load tests",
	}
	var may, lacks, unknown []string
	for _, right := range needs {
		switch allowed, ok := f.User[right]; {
		case !ok:
			unknown = append(unknown, right.String())
		case allowed:
			may = append(may, right.String())
		default:
			lacks = append(lacks, right.String())
		}
	}
	switch {
	case len(lacks) > 0:
		c.Status = Missing
		c.Detail = fmt.Sprintf("you may not %s in namespace %s", strings.Join(lacks, ", "), f.Namespace)
	case len(unknown) > 0:
		c.Status, c.Detail = Unknown, f.UserUnasked
	default:
		c.Detail = "you may " + strings.Join(may, ", ")
	}
	return c
}

func (f *Facts) namespace() Check {
	c := Check{
		Name:   "namespace",
		Status: OK,
		Detail: f.Namespace + " accepts faults",
	}
	switch {
	case f.NamespaceAbsent:
		c.Status = Missing
		c.Required = true
		c.Detail = fmt.Sprintf("there is no namespace %s", f.Namespace)
	case f.NamespaceUnasked != "":
		c.Status, c.Detail = Unknown, f.NamespaceUnasked
	case v1alpha1.SwitchedOn(f.Annotations, v1alpha1.AnnotationProtected):
		c.Status = Note
		c.Detail = fmt.Sprintf("%s has the annotation %s: no fault runs in it", f.Namespace,
			v1alpha1.AnnotationProtected)
	case v1alpha1.SwitchedOn(f.Annotations, v1alpha1.AnnotationStop):
		c.Status = Note
		c.Detail = fmt.Sprintf(
			"%s has the annotation %s: no fault begins in it until `redquake stop --all --allow`",
			f.Namespace, v1alpha1.AnnotationStop)
	case f.StoppedEverywhere:
		c.Status = Note
		c.Detail = fmt.Sprintf(
			"the operator's namespace has the annotation %s: no fault begins until `redquake stop --all -A --allow`",
			v1alpha1.AnnotationStop)
	}
	return c
}

func (f *Facts) clusterPolicy() Check {
	c := Check{
		Name:   "policy",
		Status: OK,
		Detail: "no ConfigMap " + policy.ConfigMap + ": only one node may be tainted at once",
	}
	switch {
	case f.PolicyUnasked != "":
		c.Status, c.Detail = Unknown, f.PolicyUnasked
	case f.PolicyInvalid != "":
		c.Status = Missing
		c.Detail = "no fault begins: ConfigMap " + policy.ConfigMap + ": " + f.PolicyInvalid
	case f.Policy != nil:
		var limits []string
		for _, l := range f.Policy.Limits(f.Namespace, f.Labels) {
			limits = append(limits, fmt.Sprintf("%s at most %d", l.Of, l.Max))
		}
		c.Detail = "in this namespace: " + strings.Join(limits, ", ")
	}
	return c
}

func (f *Facts) nodes() Check {
	c := Check{
		Name:   "nodes",
		Status: OK,
		Detail: fmt.Sprintf("%d ready and schedulable of %d", f.Nodes.Schedulable, f.Nodes.All),
	}
	switch {
	case f.Nodes.Unasked != "":
		c.Status, c.Detail = Unknown, f.Nodes.Unasked
	case f.Nodes.Schedulable == 0:
		c.Status, c.Required = Missing, true
	case f.Nodes.Schedulable == 1:
		c.Status = Note
		c.Detail += ": load pods share it with Redis, and pods cannot move to another one"
	}
	return c
}

func (f *Facts) storage() Check {
	c := Check{Name: "storage", Status: OK}
	if f.ClassesUnasked != "" {
		c.Status, c.Detail = Unknown, f.ClassesUnasked
		return c
	}
	var attach, others []string
	fallback := false
	for _, class := range f.Classes {
		name := class.Name
		if class.Default {
			name += " (default)"
			fallback = true
		}
		if class.Attaches {
			attach = append(attach, name)
		} else {
			others = append(others, name)
		}
	}
	switch {
	case len(f.Classes) == 0:
		c.Status = Note
		c.Detail = "there is no storage class: a Redis with a volume needs one"
	case len(attach) == 0:
		c.Status = Note
		c.Detail = fmt.Sprintf("no class attaches volumes to nodes, which %s needs: %s",
			strings.Join(attached(), ", "), strings.Join(others, ", "))
	default:
		c.Detail = "attach volumes to nodes: " + strings.Join(attach, ", ")
		if len(others) > 0 {
			c.Detail += "; do not: " + strings.Join(others, ", ")
		}
	}
	if len(f.Classes) > 0 && !fallback {
		c.Status = Note
		c.Detail += "; none is the default, which the samples with a volume need"
	}
	return c
}

func (f *Facts) podMetrics() Check {
	if f.PodMetrics {
		return Check{
			Name:   "pod metrics",
			Status: OK,
			Detail: "metrics.k8s.io is served, for observe.pods",
		}
	}
	return Check{
		Name:   "pod metrics",
		Status: Note,
		Detail: "metrics.k8s.io is not served: observe.pods shows nothing without metrics-server",
	}
}

func (f *Facts) chaosMesh() Check {
	c := Check{Name: "chaos mesh", Status: OK}
	switch {
	case f.ChaosMesh.Unasked != "":
		c.Status, c.Detail = Unknown, f.ChaosMesh.Unasked
	case len(f.ChaosMesh.Resources) == 0:
		c.Status = Note
		c.Detail = "it is not installed: faults with engine ChaosMesh need it"
	case f.ChaosMesh.Version == "":
		c.Detail = "its kinds are served; its version is not known"
	default:
		c.Detail = "version " + f.ChaosMesh.Version
	}
	return c
}

// attached are the types of faults that need a volume that is attached to a node.
func attached() (types []string) {
	for _, kind := range declared.All {
		if kind.Attached {
			types = append(types, string(kind.Type))
		}
	}
	return types
}
