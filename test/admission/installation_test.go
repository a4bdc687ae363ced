//go:build integration

package admission_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/manifests"
)

var (
	ownComponents = []string{"node-faults", "network-faults", "dashboards", "high-availability"} // those that need no CRDs of somebody else
	allComponents = append([]string{"prometheus"}, ownComponents...)
)

// TestInstallationIsAccepted holds that the API server takes what kustomize makes of config/default and its components,
// and pods of the manager's Deployment, whose priority is above that of other applications and below that of the
// system, and makes no room by ending others.
func TestInstallationIsAccepted(t *testing.T) {
	objects := manifests.Installation(t, "default", ownComponents...)
	makeNamespace(t, "redquake-system", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	for _, o := range objects {
		switch o.GetKind() {
		case "PriorityClass":
			created(t, o)
		default: // the CRDs are there
			if err := strict.Create(t.Context(), o.DeepCopy(), client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
	var pods []*corev1.Pod
	for _, o := range objects {
		if pod := tryPod(t, "redquake-system", o); pod != nil {
			pods = append(pods, pod)
		}
	}
	if len(pods) != 1 {
		t.Fatalf("%d workloads, want the manager's", len(pods))
	}
	const users = 1_000_000_000 // what no application may be above
	priority, preemption := ptr.Deref(pods[0].Spec.Priority, 0), ptr.Deref(pods[0].Spec.PreemptionPolicy, "")
	if priority <= users/2 || priority >= users || preemption != corev1.PreemptNever {
		t.Errorf("its priority is %d, its preemption policy %q", priority, preemption)
	}
}

// TestPriorityClass holds that the manager's Deployment names the class that the same installation brings.
func TestPriorityClass(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"default":    manifests.Installation(t, "default"),
		"namespaced": append(manifests.Installation(t, "namespaced/cluster"), manifests.Installation(t, "namespaced")...),
	} {
		class, manager := only[schedulingv1.PriorityClass](t, objects), only[appsv1.Deployment](t, objects)
		if named := manager.Spec.Template.Spec.PriorityClassName; named != class.Name || named == "" {
			t.Errorf("%s: the manager's class is %q, and there is %q", name, named, class.Name)
		}
	}
}

// TestEveryKindIsComplete holds that each kind has the roles of users, a policy that asks its creator, and a reader in
// the dashboard.
func TestEveryKindIsComplete(t *testing.T) {
	objects := manifests.Installation(t, "default")
	has := map[string]bool{}
	for _, o := range objects {
		has[o.GetKind()+" "+o.GetName()] = true
	}
	kinds := of[apiext.CustomResourceDefinition](t, objects)
	if len(kinds) != len(smallest) {
		t.Errorf("%d kinds, want %d", len(kinds), len(smallest))
	}
	for _, kind := range kinds {
		plural, singular := kind.Spec.Names.Plural, kind.Spec.Names.Singular
		for _, want := range []string{
			"ClusterRole redquake-" + singular + "-admin-role", "ClusterRole redquake-" + singular + "-editor-role",
			"ClusterRole redquake-" + singular + "-viewer-role",
			"ClusterRoleBinding redquake-dashboard-" + singular + "-viewer-rolebinding",
			"ValidatingAdmissionPolicy redquake-" + plural,
			"ValidatingAdmissionPolicyBinding redquake-" + plural,
		} {
			if !has[want] {
				t.Errorf("there is no %s", want)
			}
		}
	}
}

// TestWhoReachesTheManager evaluates the network policies of an installation as a network plugin does: the ports by
// which one can read something are closed to all but those who were let in, to the port for which they were.
func TestWhoReachesTheManager(t *testing.T) {
	type pod struct{ namespace, labels map[string]string }
	named := func(namespace string, more ...string) map[string]string {
		all := map[string]string{"kubernetes.io/metadata.name": namespace}
		for _, label := range more {
			all[label] = "enabled"
		}
		return all
	}
	prometheus := map[string]string{"app.kubernetes.io/name": "prometheus"}
	callers := map[string]pod{
		"any":                 {namespace: named("shop"), labels: prometheus},
		"a neighbour":         {namespace: named("redquake-system")},
		"let in to metrics":   {namespace: named("shop", "redquake.dev/metrics")},
		"let in to dashboard": {namespace: named("ingress", "redquake.dev/dashboard")},
		"the Prometheus":      {namespace: named("monitoring"), labels: prometheus},
		"beside Prometheus": {
			namespace: named("monitoring"),
			labels:    map[string]string{"app.kubernetes.io/name": "grafana"},
		},
	}
	byDefault := map[string]string{"let in to metrics": "metrics", "let in to dashboard": "dashboard"}
	withPrometheus := map[string]string{
		"let in to metrics":   "metrics",
		"let in to dashboard": "dashboard",
		"the Prometheus":      "metrics",
	}
	for name, test := range map[string]struct {
		objects []*unstructured.Unstructured
		admits  map[string]string // caller: the ports
	}{
		"default":    {manifests.Installation(t, "default"), byDefault},
		"prometheus": {manifests.Installation(t, "default", "prometheus"), withPrometheus},
		"namespaced": {manifests.Installation(t, "namespaced"), byDefault},
		"all":        {manifests.Installation(t, "default", allComponents...), withPrometheus},
	} {
		t.Run(name, func(t *testing.T) {
			manager := only[appsv1.Deployment](t, test.objects)
			policies := of[networkingv1.NetworkPolicy](t, test.objects)
			for _, p := range policies {
				if p.Namespace != manager.Namespace || !selects(t, &p.Spec.PodSelector, manager) {
					t.Errorf("NetworkPolicy %s/%s does not select the manager's pods", p.Namespace, p.Name)
				}
				if !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
					t.Errorf("NetworkPolicy %s is about %v; the manager must reach Redis, load pods and the API server", p.Name,
						p.Spec.PolicyTypes)
				}
			}
			if len(policies) == 0 {
				t.Error("there is no NetworkPolicy")
			}
			for caller, from := range callers {
				if got := strings.Join(admitted(t, policies, from.namespace, from.labels, manager),
					","); got != test.admits[caller] {
					t.Errorf("%s reaches %q, want %q", caller, got, test.admits[caller])
				}
			}
		})
	}
}

// admitted returns the names of the manager's ports to which policies admit a pod. A port that the manager does not
// have is an error.
func admitted(
	t *testing.T, policies []networkingv1.NetworkPolicy, namespace, pod map[string]string, manager appsv1.Deployment,
) (names []string) {
	t.Helper()
	matches := func(s *metav1.LabelSelector, set map[string]string) bool {
		selector, err := metav1.LabelSelectorAsSelector(cmp.Or(s, &metav1.LabelSelector{}))
		if err != nil {
			t.Fatal(err)
		}
		return selector.Matches(labels.Set(set))
	}
	for _, p := range policies {
		for _, rule := range p.Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("NetworkPolicy %s has a rule for all pods or for all ports", p.Name)
			}
			open := slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.NamespaceSelector != nil && matches(peer.NamespaceSelector, namespace) && matches(peer.PodSelector, pod)
			})
			for _, port := range rule.Ports {
				if name := portName(t, manager, port); open && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// portName is what the manager's container calls a port of a policy.
func portName(t *testing.T, manager appsv1.Deployment, port networkingv1.NetworkPolicyPort) string {
	t.Helper()
	for _, p := range manager.Spec.Template.Spec.Containers[0].Ports {
		if port.Port != nil && (*port.Port == intstr.FromInt32(p.ContainerPort) || *port.Port == intstr.FromString(p.Name)) {
			return p.Name
		}
	}
	t.Errorf("the manager has no port %v", port.Port)
	return ""
}

// TestHighAvailability holds that the component brings a standby, elsewhere, and a budget that lets one manager be
// evicted at a time, and none for a manager alone.
func TestHighAvailability(t *testing.T) {
	alone := manifests.Installation(t, "default")
	if manager, budgets := only[appsv1.Deployment](t, alone), of[policyv1.PodDisruptionBudget](t,
		alone); *manager.Spec.Replicas != 1 || len(budgets) > 0 {
		t.Errorf("by default there are %d managers and %d budgets", *manager.Spec.Replicas, len(budgets))
	}
	objects := manifests.Installation(t, "default", "high-availability")
	manager, budget := only[appsv1.Deployment](t, objects), only[policyv1.PodDisruptionBudget](t, objects)
	if *manager.Spec.Replicas != 2 || !slices.Contains(manager.Spec.Template.Spec.Containers[0].Args, "--leader-elect") {
		t.Errorf("there are %d managers, with %q", *manager.Spec.Replicas, manager.Spec.Template.Spec.Containers[0].Args)
	}
	if budget.Namespace != manager.Namespace || !selects(t, budget.Spec.Selector, manager) ||
		budget.Spec.MinAvailable != nil ||
		budget.Spec.MaxUnavailable == nil || *budget.Spec.MaxUnavailable != intstr.FromInt32(1) {
		t.Errorf("the budget in %s is %+v", budget.Namespace, budget.Spec)
	}
	spread := manager.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) != 1 || !selects(t, spread[0].LabelSelector, manager) ||
		spread[0].TopologyKey != corev1.LabelHostname ||
		spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway || spread[0].MaxSkew != 1 {
		t.Errorf("they are spread by %+v", spread)
	}
}

// TestNamespacedIsInTwoParts holds that what an administrator applies and what runs the operator are apart, whatever
// components are in: objects of the cluster are in the first, those of the operator's namespace in the second, but for
// the ServiceAccounts, to which bindings in both refer.
func TestNamespacedIsInTwoParts(t *testing.T) {
	for _, o := range manifests.Installation(t, "namespaced/cluster", allComponents...) {
		if o.GetKind() != "ServiceAccount" && isNamespaced(t, o) {
			t.Errorf("the administrator's part has %s %s, which is of a namespace", o.GetKind(), o.GetName())
		}
	}
	for _, o := range manifests.Installation(t, "namespaced", allComponents...) {
		if !isNamespaced(t, o) {
			t.Errorf("the operator's part has %s %s, which is of the cluster", o.GetKind(), o.GetName())
		}
	}
}

// of are the objects of the kind that a Go type is named after.
func of[T any](t *testing.T, objects []*unstructured.Unstructured) (found []T) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != reflect.TypeFor[T]().Name() {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
			t.Fatal(err)
		}
		found = append(found, typed)
	}
	return found
}

// only is the one object of a kind.
func only[T any](t *testing.T, objects []*unstructured.Unstructured) T {
	t.Helper()
	found := of[T](t, objects)
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s, want one", len(found), reflect.TypeFor[T]().Name())
	}
	return found[0]
}

// selects tells whether a selector selects the pods of a Deployment; one that selects all pods does not count.
func selects(t *testing.T, selector *metav1.LabelSelector, d appsv1.Deployment) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}
