//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// underPolicies creates the admission policies of files, for the whole cluster, until the end of the test. It returns
// once the API server applies them: once admitted reports that of what became of a pod, which is not created.
func (n *namespace) underPolicies(pod *corev1.Pod, admitted func(*corev1.Pod, error) bool, files ...string) {
	n.Helper()
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			n.Fatal(err)
		}
		for _, object := range objects {
			if err := cluster.Apply(n.Context(), client.ApplyConfigurationFromUnstructured(object),
				client.FieldOwner("redquake-e2e"), client.ForceOwnership); err != nil {
				n.Fatalf("%s: %v", file, err)
			}
			n.Cleanup(func() {
				if err := client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(n.Context()), object)); err != nil {
					n.Error(err)
				}
			})
		}
	}
	pod.Namespace = n.name
	n.eventually(patience, "the policies "+strings.Join(files, ", ")+" apply", func() (bool, string) {
		tried := pod.DeepCopy()
		err := client.NewDryRunClient(cluster).Create(n.Context(), tried)
		return admitted(tried, err), fmt.Sprintf("%v: %s", err, asJSON(n.T, tried.Spec))
	})
}
