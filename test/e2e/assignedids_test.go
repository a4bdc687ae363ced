//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

const assignedUser = 1000680000

// TestAssignedIDs runs the operator, Redis, load pods and the holder of a volume as users that the namespace assigns,
// under the rules of OpenShift's restricted-v2: admission policies assign and refuse, kubelets run what results. It
// runs alone, as it replaces the operator.
func TestAssignedIDs(t *testing.T) {
	meta := metav1.ObjectMeta{
		GenerateName: "e2e-assigned-", Labels: map[string]string{"scc": "restricted-v2"},
		Annotations: map[string]string{"openshift.io/sa.scc.uid-range": "1000680000/10000"},
	}
	n := makeNamespace(t, meta)
	const policies = "../../internal/children/testdata/restricted_v2"
	n.underPolicies(onePod("fixed", "x"), func(_ *corev1.Pod, err error) bool { // its user is 999
		return err != nil && strings.Contains(err.Error(), "runAsUser must be in the range")
	}, "testdata/assigned-ids.yaml", policies+".yaml", policies+"_binding.yaml")
	n.operatorWithAssignedIDs(&meta)

	n.applyRedis(withoutIDs)
	n.runsAsAssigned(n.redisPod())
	n.create(n.smallLoad("checkout-cache", 15*time.Minute))
	fault := &v1alpha1.RedisFault{}
	n.sample("volumeattachdelay.yaml", fault)
	fault.Spec.Duration = span(15 * time.Second)
	fault.Spec.Trigger.SteadyFor, fault.Spec.Trigger.Timeout = span(3*time.Second), *span(patience)
	fault.Spec.RecoveryDeadline = *span(60 * time.Second)
	bothNodes.Lock() // the taint affects all tests
	defer bothNodes.Unlock()
	n.create(fault)
	n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonActive)
	holders := n.holders(fault.Name)
	if len(holders) != 1 {
		t.Fatalf("%d holders, want one", len(holders))
	}
	n.runsAsAssigned(&holders[0])
	pod := n.onlyLoadPod("checkout-cache")
	n.runsAsAssigned(pod)
	if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Error("the load pod may write to its root file system")
	}
	n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	ended := n.endLoad("checkout-cache")
	n.sumsAgree(ended, n.record(ended))
}

// withoutIDs leaves users and groups of a StatefulSet to the namespace.
func withoutIDs(object *unstructured.Unstructured) {
	for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "securityContext", field)
	}
}

// operatorWithAssignedIDs has the operator's namespace assign users as well, until the end of the test.
func (n *namespace) operatorWithAssignedIDs(like *metav1.ObjectMeta) {
	n.Helper()
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}
	change := func(labels, annotations string) {
		merge := `{"metadata":{"labels":{"scc":` + labels + `},"annotations":{"openshift.io/sa.scc.uid-range":` +
			annotations + `}}}`
		if err := cluster.Patch(context.WithoutCancel(n.Context()), own,
			client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
			n.Fatal(err)
		}
	}
	n.Cleanup(func() {
		change("null", "null")
		if err := restartOperator(context.WithoutCancel(n.Context())); err != nil {
			n.Error(err)
		}
	})
	change(asJSON(n.T, like.Labels["scc"]), asJSON(n.T, like.Annotations["openshift.io/sa.scc.uid-range"]))
	// the API server reads policies and namespaces from a cache
	n.eventually(patience, "users are assigned in "+operatorNamespace, func() (bool, string) {
		pod := onePod("assigned", "x")
		pod.Namespace, pod.Spec.SecurityContext.RunAsUser = operatorNamespace, nil
		err := client.NewDryRunClient(cluster).Create(n.Context(), pod)
		return err == nil && isAssigned(pod), fmt.Sprintf("%v: %s", err, asJSON(n.T, pod.Spec.SecurityContext))
	})
	if err := restartOperator(n.Context()); err != nil {
		n.Fatal(err)
	}
	pod, err := operatorPod(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	n.runsAsAssigned(pod)
}

// isAssigned reports whether a pod asks for the user and the group that the namespace assigns.
func isAssigned(pod *corev1.Pod) bool {
	s := pod.Spec.SecurityContext
	return s != nil && s.RunAsUser != nil && *s.RunAsUser == assignedUser && s.FSGroup != nil && *s.FSGroup == assignedUser
}

// runsAsAssigned checks as whom the kubelet runs a pod's containers: their group is 0, as the image knows no such user.
func (n *namespace) runsAsAssigned(pod *corev1.Pod) {
	n.Helper()
	if !isAssigned(pod) {
		n.Errorf("%s asks for %s, want user and fsGroup %d", pod.Name, asJSON(n.T, pod.Spec.SecurityContext), assignedUser)
	}
	n.watched(patience, pod.Name+" runs", &corev1.PodList{}, pod.Name, func() (bool, string) {
		if err := cluster.Get(n.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, err.Error()
		}
		return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase)
	})
	for _, c := range pod.Status.ContainerStatuses {
		if c.User == nil || c.User.Linux == nil || c.User.Linux.UID != assignedUser || c.User.Linux.GID != 0 {
			n.Errorf("container %s of %s runs as %s, want user %d and group 0", c.Name, pod.Name, asJSON(n.T, c.User),
				assignedUser)
		}
	}
}
