//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestCutEndsWithoutOperator kills the operator while a server is cut off, and keeps it away: the kernel lifts the cut
// 10 s after the last renewal, as a client in another pod sees it.
func TestCutEndsWithoutOperator(t *testing.T) {
	n := privilegedNamespace(t, "e2e-away-")
	n.applyRedis(nil)
	n.create(n.steadyLoad("base", standaloneTarget(), 15*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	observed := n.observer(n.redisPod().Status.PodIP)
	fault := faultOn("base", "cut", v1alpha1.FaultNetworkPartition, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.NetworkPartition = &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients}}
		s.Duration = span(5 * time.Minute)
	})
	n.create(fault)
	n.waitFault(fault.Name, patience, v1alpha1.ReasonActive)
	n.eventually(patience, "the cut is older than the kernel would keep it", func() (bool, string) {
		seen := observed()
		return len(seen) > 0 && time.Since(seen[len(seen)-1]) > 15*time.Second, fmt.Sprintf("%d answers", len(seen))
	})

	killed := n.operatorAway()
	var back time.Time
	n.eventually(patience, "an answer without an operator", func() (bool, string) {
		seen := observed()
		if i := slices.IndexFunc(seen, func(at time.Time) bool { return at.After(killed) }); i >= 0 {
			back = seen[i]
		}
		return !back.IsZero(), "none after " + killed.String()
	})
	took := back.Sub(killed)
	t.Logf("answered %s after the operator's death", took.Round(time.Millisecond))
	// The observer asks again after half a second without an answer, and at most a second passes until its connection
	// comes through: the kernel repeats a SYN after a second.
	if took > 12*time.Second {
		t.Errorf("a client was answered %s after the death of the operator, want 10 s", took)
	}
	n.operatorBack()
	n.waitFault(fault.Name, 8*time.Minute, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered, v1alpha1.ReasonInconclusive)
}

// observer is a client in a pod of its own, see asks: the result returns the answers.
func (n *namespace) observer(address string) func() []time.Time {
	n.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "observer"}, Spec: asks(address)}
	n.create(pod)
	n.podReady(pod.Name, patience)
	return func() []time.Time { return n.answers(pod.Name) }
}

// asks is a pod that asks a server for its time some ten times a second, waits for half a second, and prints the answers.
func asks(address string) corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name: "observer", Image: "docker.io/library/redis:7", ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{
				"sh", "-c",
				"while :; do timeout 0.5 redis-cli -h " + address + " time 2> /dev/null; sleep 0.05; done",
			},
		}},
	}
}

// answers are the times that a pod that asks has printed.
func (n *namespace) answers(pod string) []time.Time {
	n.Helper()
	text, err := cluster.clientset.CoreV1().Pods(n.name).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	var seen []time.Time
	words := strings.Fields(string(text))
	for i := 0; i+1 < len(words); i += 2 { // the second of two may still be missing
		seconds, bad := strconv.ParseInt(words[i], 10, 64)
		micros, worse := strconv.ParseInt(words[i+1], 10, 64)
		if err := errors.Join(bad, worse); err != nil {
			n.Fatalf("the observer wrote %q: %v", words[i:i+2], err)
		}
		seen = append(seen, time.Unix(seconds, 1000*micros))
	}
	return seen
}

// operatorAway kills the operator, which stays away until operatorBack, and returns when. No other test may run beside.
func (n *namespace) operatorAway() time.Time {
	n.Helper()
	pod, err := operatorPod(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	n.scaleOperator(n.Context(), 0)
	n.Cleanup(func() { n.scaleOperator(context.Background(), 1) })
	at := time.Now()
	if err := cluster.Delete(n.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		n.Fatal(err)
	}
	return at
}

func (n *namespace) operatorBack() {
	n.Helper()
	n.scaleOperator(n.Context(), 1)
	n.operatorRolledOut()
}

func (n *namespace) scaleOperator(ctx context.Context, replicas int) {
	n.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorDeployment}}
	if err := cluster.Patch(ctx, deployment, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas))); err != nil {
		n.Errorf("scale the operator to %d: %v", replicas, err)
	}
}
