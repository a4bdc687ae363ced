//go:build integration

package admission_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	ownComponents = []string{"node-faults", "dashboards"} // those that need no CRDs of somebody else
	allComponents = append([]string{"prometheus"}, ownComponents...)
)

// TestInstallationIsAccepted holds that the API server takes what kustomize makes of config/default and its components, and pods of the manager's Deployment,
// whose priority is above that of other applications and below that of the system, and makes no room by ending others.
func TestInstallationIsAccepted(t *testing.T) {
	objects := installation(t, "default", ownComponents...)
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
		"default":    installation(t, "default"),
		"namespaced": append(installation(t, "namespaced/cluster"), installation(t, "namespaced")...),
	} {
		class, manager := only[schedulingv1.PriorityClass](t, objects), only[appsv1.Deployment](t, objects)
		if named := manager.Spec.Template.Spec.PriorityClassName; named != class.Name || named == "" {
			t.Errorf("%s: the manager's class is %q, and there is %q", name, named, class.Name)
		}
	}
}

// TestNamespacedIsInTwoParts holds that what an administrator applies and what runs the operator are apart, whatever components are in: objects of the cluster
// are in the first, those of the operator's namespace in the second, but for the ServiceAccounts, to which bindings in both refer.
func TestNamespacedIsInTwoParts(t *testing.T) {
	for _, o := range installation(t, "namespaced/cluster", allComponents...) {
		if o.GetKind() != "ServiceAccount" && isNamespaced(t, o) {
			t.Errorf("the administrator's part has %s %s, which is of a namespace", o.GetKind(), o.GetName())
		}
	}
	for _, o := range installation(t, "namespaced", allComponents...) {
		if !isNamespaced(t, o) {
			t.Errorf("the operator's part has %s %s, which is of the cluster", o.GetKind(), o.GetName())
		}
	}
}

// installation is what kustomize makes of a folder of config/ whose default installation has components, as `make build/install.yaml COMPONENTS=` does.
func installation(t *testing.T, folder string, components ...string) []*unstructured.Unstructured {
	t.Helper()
	config := t.TempDir()
	if err := os.CopyFS(config, os.DirFS("../../config")); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(config, "default", "kustomization.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(components) > 0 {
		_, err = file.WriteString("components: [../components/" + strings.Join(components, ", ../components/") + "]\n")
	}
	if err := cmp.Or(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	built := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", filepath.Join(config, folder))
	built.Stderr = os.Stderr
	text, err := built.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize config/%s with %v: %v", folder, components, err)
	}
	return objectsIn(t, folder, text)
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
