package doctor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/config/crd"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/rights"
)

// Facts are what the API server says. A field that ends in Unasked says why something is not known.
type Facts struct {
	Namespace string

	Server string // version of Kubernetes
	Minor  int    // 0 = unknown

	Served         []string // resources of redquake.dev
	OtherSchemas   []string // of these, with another schema than this program's
	SchemasUnasked string

	AdmissionPolicies int
	AdmissionUnasked  string

	Managers        []Manager
	ManagersUnasked string

	User        map[rights.Right]bool // what the user may do in the namespace
	UserUnasked string
	Operator    map[rights.Right]bool // what the operator may do there

	NamespaceAbsent     bool
	NamespaceUnasked    string
	Labels, Annotations map[string]string
	StoppedEverywhere   bool

	Policy        *policy.Policy // nil = there is none
	PolicyInvalid string
	PolicyUnasked string

	Nodes Nodes

	Classes        []Class
	ClassesUnasked string

	PodMetrics bool
	ChaosMesh  ChaosMesh
}

// Manager is a Deployment of the operator.
type Manager struct {
	Namespace, Name, ServiceAccount, Image string
	Ready, Wanted                          int32
	Faults                                 string   // its flag --faults
	Namespaces                             []string // that it watches; none = all
}

// On are the types of faults that are switched on; all if the flag cannot be read.
func (m *Manager) On() []v1alpha1.FaultType {
	on, err := declared.SwitchedOn(m.Faults)
	if err != nil {
		return declared.Types()
	}
	return on
}

// Nodes counts the nodes.
type Nodes struct {
	All, Schedulable int // ready, and not cordoned
	Unasked          string
}

// Class is a storage class.
type Class struct {
	Name              string
	Default, Attaches bool
}

// ChaosMesh is what is there of Chaos Mesh.
type ChaosMesh struct {
	Resources []string
	Version   string
	Unasked   string
}

// Gather asks the API server. It fails only if that does not answer.
func Gather(ctx context.Context, c *kube.Client) (*Facts, error) {
	f := &Facts{Namespace: c.Namespace}
	text, err := c.Raw(ctx, "/version")
	if err != nil {
		return nil, kube.Explain(err, "read the version of the API server")
	}
	var version struct{ GitVersion, Major, Minor string }
	if err := yaml.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("read the version of the API server: %w", err)
	}
	f.Server = version.GitVersion
	if version.Major == "1" {
		_, _ = fmt.Sscanf(version.Minor, "%d", &f.Minor)
	}
	for _, ask := range []func(context.Context, *kube.Client) error{
		f.askKinds, f.askAdmission, f.askManagers, f.askNamespace, f.askRights, f.askPolicy, f.askNodes,
		f.askClasses, f.askServed,
	} {
		if err := ask(ctx, c); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// unasked is why the user may not ask for something; the error is any other.
func unasked(err error, doing string) (string, error) {
	if err == nil {
		return "", nil
	}
	if kube.IsNotPermitted(err) || kube.IsNotPermitted(errors.Unwrap(err)) {
		return fmt.Sprintf("you may not %s", doing), nil
	}
	return "", kube.Explain(err, doing)
}

func (f *Facts) askKinds(ctx context.Context, c *kube.Client) error {
	list, err := c.Resources(ctx, v1alpha1.GroupVersion)
	if err != nil {
		return err
	}
	for _, r := range list.APIResources {
		f.Served = append(f.Served, r.Name)
	}
	crds := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	defined, err := c.List(ctx, crds, "", metav1.ListOptions{})
	if err != nil {
		f.SchemasUnasked, err = unasked(err, "list customresourcedefinitions")
		return err
	}
	for _, kind := range kube.AllKinds {
		name := kind.Resource + "." + v1alpha1.GroupVersion.Group
		i := slices.IndexFunc(defined, func(u unstructured.Unstructured) bool {
			return u.GetName() == name
		})
		if i < 0 {
			continue
		}
		same, err := sameSchema(defined[i].Object, kind)
		if err != nil {
			return err
		}
		if !same {
			f.OtherSchemas = append(f.OtherSchemas, kind.Resource)
		}
	}
	return nil
}

// sameSchema reports whether a CRD of the cluster has the schema of this program's.
func sameSchema(there map[string]any, kind kube.Kind) (bool, error) {
	text, err := crd.Bases.ReadFile("bases/" + v1alpha1.GroupVersion.Group + "_" + kind.Resource +
		".yaml")
	if err != nil {
		return false, err
	}
	json, err := yaml.YAMLToJSON(text)
	if err != nil {
		return false, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		return false, err
	}
	return reflect.DeepEqual(schemaOf(there), schemaOf(u.Object)), nil
}

func schemaOf(object map[string]any) any {
	versions, _, _ := unstructured.NestedSlice(object, "spec", "versions")
	if len(versions) == 0 {
		return nil
	}
	first, _ := versions[0].(map[string]any)
	spec, _, _ := unstructured.NestedFieldNoCopy(first, "schema", "openAPIV3Schema", "properties",
		"spec")
	return spec
}

func (f *Facts) askAdmission(ctx context.Context, c *kube.Client) (err error) {
	resource := schema.GroupVersionResource{
		Group:    "admissionregistration.k8s.io",
		Version:  "v1",
		Resource: "validatingadmissionpolicies",
	}
	list, err := c.List(ctx, resource, "", metav1.ListOptions{
		LabelSelector: v1alpha1.LabelName + "=redquake",
	})
	f.AdmissionPolicies = len(list)
	f.AdmissionUnasked, err = unasked(err, "list validatingadmissionpolicies")
	return err
}

func (f *Facts) askManagers(ctx context.Context, c *kube.Client) error {
	all, err := c.Managers(ctx)
	if err != nil {
		f.ManagersUnasked, err = unasked(err, "list deployments in namespace "+kube.OperatorNamespace)
		return err
	}
	for i := range all {
		f.Managers = append(f.Managers, managerOf(&all[i]))
	}
	return nil
}

func managerOf(d *appsv1.Deployment) Manager {
	m := Manager{
		Namespace:      d.Namespace,
		Name:           d.Name,
		Ready:          d.Status.ReadyReplicas,
		Wanted:         1,
		Faults:         policy.All,
		ServiceAccount: d.Spec.Template.Spec.ServiceAccountName,
	}
	if d.Spec.Replicas != nil {
		m.Wanted = *d.Spec.Replicas
	}
	watched := ""
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name != "manager" {
			continue
		}
		m.Image = container.Image
		for _, env := range container.Env {
			if env.Name == "WATCH_NAMESPACE" {
				watched = env.Value
			}
		}
		for _, arg := range container.Args {
			name, value, _ := strings.Cut(arg, "=")
			switch strings.TrimLeft(name, "-") {
			case "faults":
				m.Faults = strings.TrimPrefix(m.Faults+","+value, ",") // several are one list
			case "namespaces":
				watched = value
			}
		}
	}
	m.Namespaces = strings.FieldsFunc(watched, func(r rune) bool { return r == ',' || r == ' ' })
	return m
}

func (f *Facts) askNamespace(ctx context.Context, c *kube.Client) error {
	namespace := func(name string) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		u.SetName(name)
		return c.Get(ctx, u)
	}
	own, err := namespace(f.Namespace)
	if err != nil {
		f.NamespaceUnasked, err = unasked(err, "get namespace "+f.Namespace)
		return err
	}
	if f.NamespaceAbsent = own == nil; own != nil {
		f.Labels, f.Annotations = own.GetLabels(), own.GetAnnotations()
	}
	if len(f.Managers) > 0 {
		operators, err := namespace(f.Managers[0].Namespace)
		if err == nil && operators != nil {
			f.StoppedEverywhere = v1alpha1.SwitchedOn(operators.GetAnnotations(), v1alpha1.AnnotationStop)
		}
	}
	return nil
}

func (f *Facts) askPolicy(ctx context.Context, c *kube.Client) error {
	home := kube.OperatorNamespace
	if len(f.Managers) > 0 {
		home = f.Managers[0].Namespace
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	u.SetNamespace(home)
	u.SetName(policy.ConfigMap)
	found, err := c.Get(ctx, u)
	if err != nil {
		f.PolicyUnasked, err = unasked(err, "get ConfigMap "+policy.ConfigMap+" in namespace "+home)
		return err
	}
	if found == nil {
		return nil
	}
	text, _, _ := unstructured.NestedString(found.Object, "data", policy.Key)
	if f.Policy, err = parsePolicy(text); err != nil {
		f.PolicyInvalid = err.Error()
	}
	return nil
}

func (f *Facts) askNodes(ctx context.Context, c *kube.Client) error {
	nodes, err := c.List(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), "",
		metav1.ListOptions{})
	if err != nil {
		f.Nodes.Unasked, err = unasked(err, "list nodes")
		return err
	}
	f.Nodes.All = len(nodes)
	for i := range nodes {
		cordoned, _, _ := unstructured.NestedBool(nodes[i].Object, "spec", "unschedulable")
		conditions, _, _ := unstructured.NestedSlice(nodes[i].Object, "status", "conditions")
		ready := slices.ContainsFunc(conditions, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == "Ready" && condition["status"] == "True"
		})
		if ready && !cordoned {
			f.Nodes.Schedulable++
		}
	}
	return nil
}

func (f *Facts) askClasses(ctx context.Context, c *kube.Client) error {
	storage := schema.GroupVersion{Group: "storage.k8s.io", Version: "v1"}
	classes, err := c.List(ctx, storage.WithResource("storageclasses"), "", metav1.ListOptions{})
	if err != nil {
		f.ClassesUnasked, err = unasked(err, "list storageclasses")
		return err
	}
	drivers, err := c.List(ctx, storage.WithResource("csidrivers"), "", metav1.ListOptions{})
	if err != nil {
		f.ClassesUnasked, err = unasked(err, "list csidrivers")
		return err
	}
	attaches := map[string]bool{}
	for i := range drivers {
		required, found, _ := unstructured.NestedBool(drivers[i].Object, "spec", "attachRequired")
		attaches[drivers[i].GetName()] = required || !found
	}
	for i := range classes {
		provisioner, _, _ := unstructured.NestedString(classes[i].Object, "provisioner")
		f.Classes = append(f.Classes, Class{
			Name:     classes[i].GetName(),
			Attaches: attaches[provisioner],
			Default:  classes[i].GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true",
		})
	}
	return nil
}

// askServed asks for what other projects serve.
func (f *Facts) askServed(ctx context.Context, c *kube.Client) error {
	metrics, err := c.Resources(ctx, schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"})
	f.PodMetrics = err == nil && len(metrics.APIResources) > 0
	mesh, err := c.Resources(ctx, schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"})
	if err != nil {
		f.ChaosMesh.Unasked = err.Error()
		return nil //nolint:nilerr // it is in the report
	}
	for _, r := range mesh.APIResources {
		f.ChaosMesh.Resources = append(f.ChaosMesh.Resources, r.Name)
	}
	if len(f.ChaosMesh.Resources) == 0 {
		return nil
	}
	controllers, err := c.Deployments(ctx,
		metav1.ListOptions{LabelSelector: v1alpha1.LabelComponent + "=controller-manager"}, "chaos-mesh")
	if err != nil {
		return nil //nolint:nilerr // the version is left out
	}
	for i := range controllers {
		for _, container := range controllers[i].Spec.Template.Spec.Containers {
			image := container.Image
			if strings.Contains(image, "chaos-mesh") {
				_, f.ChaosMesh.Version, _ = strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			}
		}
	}
	return nil
}
