//go:build e2e

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/await"
)

// deployTime is how long the worlds may take until they serve.
const deployTime = 5 * time.Minute

// world is a World in a namespace.
type world struct {
	World
	namespace string
}

// raise makes the worlds, and the namespace of pulses with an account that may read the manager's metrics.
func (s *soak) raise() {
	s.Helper()
	s.enoughCPU()
	samples := filepath.Join("..", "..", "config", "samples")
	for i, w := range Worlds {
		s.worlds = append(s.worlds, &world{w, s.namespace(w.Name)})
		file := []string{
			filepath.Join(samples, "redis-standalone", "redis.yaml"), filepath.Join("testdata", "pair.yaml"),
			filepath.Join(samples, "redis-sentinel", "redis.yaml"), filepath.Join(samples, "redis-cluster", "redis.yaml"),
		}[i]
		for _, object := range readObjects(s, file) {
			if w.Name == "cluster" {
				withoutReplicas(object)
			}
			object.SetNamespace(s.worlds[i].namespace)
			s.must("create "+object.GetKind()+" "+object.GetName(), s.Create(s.Context(), object))
		}
	}
	s.pulses = s.namespace("pulses")
	s.must("create an account",
		s.Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.pulses, Name: "scraper"}}))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.pulses},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "redquake-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.pulses, Name: "scraper"}},
	}
	s.must("bind the account", s.Create(s.Context(), binding))
	s.Cleanup(func() {
		s.clean("the binding of the scraper", func(ctx context.Context) error { return s.Delete(ctx, binding) })
	})
}

// enoughCPU has the manager request half a CPU. The judge's limits are in seconds, and the lab's nodes share a machine
// that may have other work: with what it requests by default, the manager would wait for a CPU for most of the time.
func (s *soak) enoughCPU() {
	s.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: managerName}}
	s.must("patch the manager's requests",
		s.Patch(s.Context(), deployment, client.RawPatch("application/strategic-merge-patch+json",
			[]byte(
				`{"spec":{"template":{"spec":{"containers":[{"name":"manager","resources":{"requests":{"cpu":"500m"}}}]}}}}`))))
	await.Within(s.T, deployTime, "the manager has more CPU", func() error {
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		is := &deployment.Status
		return await.That(is.ObservedGeneration == deployment.Generation && is.UpdatedReplicas == 1 && is.Replicas == 1 &&
			is.AvailableReplicas == 1, "%+v", *is)
	})
}

// namespace makes one under the restricted Pod Security Standard. It is deleted at the end.
func (s *soak) namespace(name string) string {
	s.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "soak-" + name + "-",
		Labels:       map[string]string{labelSoak: name, "pod-security.kubernetes.io/enforce": "restricted"},
	}}
	s.must("create a namespace", s.Create(s.Context(), ns))
	s.Cleanup(func() { s.clean("namespace "+ns.Name, func(ctx context.Context) error { return s.Delete(ctx, ns) }) })
	return ns.Name
}

// clean does what has to be done even after a failure, and while the API server comes back.
func (s *soak) clean(what string, do func(context.Context) error) {
	if err := await.Try(context.Background(), await.Limit, func() error {
		return client.IgnoreNotFound(do(context.Background()))
	}); err != nil {
		s.Errorf("delete %s: %v", what, err)
	}
}

func (s *soak) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// withoutReplicas makes the cluster of the samples one of three primaries.
func withoutReplicas(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "StatefulSet":
		_ = unstructured.SetNestedField(object.Object, int64(3), "spec", "replicas")
	case "ConfigMap":
		script, _, _ := unstructured.NestedString(object.Object, "data", "create.sh")
		script = strings.NewReplacer(`nodes="0 1 2 3 4 5"`, `nodes="0 1 2"`, "cluster_known_nodes:6", "cluster_known_nodes:3",
			"--cluster-replicas 1", "--cluster-replicas 0").Replace(script)
		_ = unstructured.SetNestedField(object.Object, script, "data", "create.sh")
	}
}

// readObjects reads all documents of a YAML file.
func readObjects(s *soak, file string) (objects []*unstructured.Unstructured) {
	s.Helper()
	text, err := os.ReadFile(file)
	s.must("read "+file, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			s.Fatalf("%s: %v", file, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// rolledOut is an error unless all pods of a StatefulSet match its template and are ready.
func (s *soak) rolledOut(namespace, name string) (*appsv1.StatefulSet, error) {
	ctx, cancel := context.WithTimeout(s.Context(), requestLimit)
	defer cancel()
	set := &appsv1.StatefulSet{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
		return nil, err
	}
	is, want := &set.Status, *set.Spec.Replicas
	if is.ObservedGeneration != set.Generation || is.ReadyReplicas != want || is.UpdatedReplicas != want ||
		is.Replicas != want {
		return nil, fmt.Errorf("StatefulSet %s/%s is not rolled out: %d of %d ready, %d updated", namespace, name,
			is.ReadyReplicas, want, is.UpdatedReplicas)
	}
	return set, nil
}
