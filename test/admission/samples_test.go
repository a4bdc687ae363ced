//go:build integration

package admission_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/manifests"
)

// All shipped manifests are accepted unchanged, without unknown fields. The CRDs are installed by then.
func TestManifestsAreAccepted(t *testing.T) {
	makeNamespace(t, "system", nil)
	for folder, objects := range map[string]int{"samples": 40, "rbac": 17, "manager": 5, "network-policy": 1} {
		t.Run(folder, func(t *testing.T) {
			seen := 0
			for file, shipped := range filesOf(t, folder) {
				for _, o := range shipped {
					seen++
					if isNamespaced(t, o) && o.GetNamespace() == "" {
						o.SetNamespace("default")
					}
					err := strict.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
					if o.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err) {
						err = nil
					}
					if err != nil {
						t.Errorf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
					}
					if _, ok := o.Object["status"]; ok {
						t.Errorf("%s: %s %s has a status, which only the cluster writes", file, o.GetKind(), o.GetName())
					}
				}
			}
			if seen < objects {
				t.Errorf("%d objects in config/%s, want at least %d", seen, folder, objects)
			}
		})
	}
}

// The samples' Redis runs with the restricted Pod Security Standard enforced; so does the manager:
// TestInstallationIsAccepted.
func TestPodsAreRestricted(t *testing.T) {
	makeNamespace(t, "restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	privileged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "restricted"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := strict.Create(t.Context(), privileged, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Fatalf("a pod that restricts nothing: %v; want it refused, or this test shows nothing", err)
	}
	checked := 0
	for _, shipped := range filesOf(t, "samples") {
		for _, o := range shipped {
			if tryPod(t, "restricted", o) != nil {
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("no workloads found, want a Redis")
	}
}

// tryPod tries whether a namespace would take the pods of a workload. It returns one as the API server completes it,
// nil if the object is no workload.
func tryPod(t *testing.T, namespace string, o *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	template, ok := podTemplate(t, o)
	if !ok {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: namespace}, Spec: template.Spec}
	for _, c := range pod.Spec.Containers { // a StatefulSet gives its pods the volumes of its claims
		for _, m := range c.VolumeMounts {
			if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				continue
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: m.Name})
		}
	}
	if err := strict.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("the pods of %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return pod
}

func podTemplate(t *testing.T, o *unstructured.Unstructured) (corev1.PodTemplateSpec, bool) {
	t.Helper()
	convert := func(into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	switch o.GetKind() {
	case "StatefulSet":
		var s appsv1.StatefulSet
		convert(&s)
		return s.Spec.Template, true
	case "Deployment":
		var d appsv1.Deployment
		convert(&d)
		return d.Spec.Template, true
	}
	return corev1.PodTemplateSpec{}, false
}

// filesOf reads the objects of each file of a folder of config/, and of the folders in it that are kustomizations.
func filesOf(t *testing.T, folder string) map[string][]*unstructured.Unstructured {
	t.Helper()
	folder = filepath.Join("../../config", folder)
	kustomizations, err := filepath.Glob(filepath.Join(folder, "*", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range append(kustomizations, filepath.Join(folder, "kustomization.yaml")) {
		of, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, of...)
	}
	out := map[string][]*unstructured.Unstructured{}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if shipped := manifests.Objects(t, name, text); len(shipped) > 0 {
			out[name] = shipped
		}
	}
	return out
}

func isNamespaced(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	namespaced, err := strict.IsObjectNamespaced(o)
	if err != nil {
		t.Fatal(err)
	}
	return namespaced
}

func makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := strict.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}
