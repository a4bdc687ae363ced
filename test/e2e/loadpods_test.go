//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestLoadPods(t *testing.T) {
	t.Parallel()
	loadPods(t)
}

// loadPods checks the load pods, and deletes one during the run.
func loadPods(t *testing.T) {
	bothNodes.RLock()
	spread := sync.OnceFunc(bothNodes.RUnlock)
	defer spread()
	n := newNamespace(t, "loadpods")
	n.applyRedis(nil)
	for _, lost := range []v1alpha1.LostPodPolicy{v1alpha1.LostPodFail, v1alpha1.LostPodContinue} {
		test := n.smallLoad("lost-"+strings.ToLower(string(lost)), 40*time.Second)
		if lost == v1alpha1.LostPodFail {
			test.Spec.Load.Duration = span(10 * time.Minute) // it ends with the loss
		}
		test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, lost
		n.create(test)
	}
	n.waitLoadTest("lost-fail", patience, v1alpha1.ReasonRunning)
	n.waitLoadTest("lost-continue", patience, v1alpha1.ReasonRunning)
	n.podsAreRestricted("lost-fail", 2)
	spread()

	gone := n.takeOne("lost-fail")
	goneToo := n.takeOne("lost-continue") // at once, while its load runs

	t.Run("Fail", func(t *testing.T) {
		test := n.in(t).fails("lost-fail", patience, v1alpha1.ReasonPodsLost, "spec.pods.lost")
		_, message, _, _ := completeReason(test.Status.Conditions)
		if !strings.Contains(message, gone.Name) && !strings.Contains(message, "index "+index(gone)) {
			t.Errorf("%s; want %s (index %s) in the message", message, gone.Name, index(gone))
		}
	})
	t.Run("Continue", func(t *testing.T) {
		n, gone := n.in(t), goneToo
		test := n.waitLoadTest("lost-continue", patience, v1alpha1.ReasonSucceeded)
		if a := test.Status.LoadPods; a == nil || a.Lost != 1 || a.Desired != 2 {
			t.Errorf("load pods %+v, want 1 of 2 lost", a)
		}
		_, message, _, _ := completeReason(test.Status.Conditions)
		named := slices.ContainsFunc(test.Status.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == v1alpha1.ReasonPodsLost &&
				(strings.Contains(d.Message, gone.Name) || strings.Contains(d.Message, "index "+index(gone)))
		})
		if test.Status.Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(message, "load pods were lost") ||
			!named {
			t.Errorf("verdict %s: %s, doubts %v; want Inconclusive, and a doubt that names %s", test.Status.Verdict, message,
				test.Status.Doubts, gone.Name)
		}
		t.Logf("%s: %s", test.Status.Verdict, message)
		series := n.record(test)
		n.sumsAgree(test, series)
		if series.Lost() != 1 || series.End() < 40*time.Second {
			t.Errorf("the record has lost %d pods and is %s long, want 1 and at least 40s", series.Lost(), series.End())
		}
	})
}

// podsAreRestricted checks a load test's Job and pods: one Indexed Job, spread over the nodes, without a way to the API
// server.
func (n *namespace) podsAreRestricted(test string, count int) {
	n.Helper()
	var jobs batchv1.JobList
	n.list(&jobs, client.MatchingLabels{"redquake.dev/loadtest": test})
	if len(jobs.Items) != 1 || *jobs.Items[0].Spec.CompletionMode != batchv1.IndexedCompletion ||
		*jobs.Items[0].Spec.Completions != int32(count) {
		n.Errorf("%d Jobs, want one Indexed Job of %d: %+v", len(jobs.Items), count, jobs.Items)
	}
	pods := n.loadPods(test)
	if len(pods) != count {
		n.Fatalf("%d load pods, want %d", len(pods), count)
	}
	nodes := map[string]bool{}
	for _, pod := range pods {
		nodes[pod.Spec.NodeName] = true
		if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
			n.Errorf("%s has automountServiceAccountToken", pod.Name)
		}
		for _, v := range pod.Spec.Volumes {
			if v.Projected != nil || v.HostPath != nil {
				n.Errorf("%s has the volume %+v", pod.Name, v)
			}
		}
		for _, c := range pod.Spec.Containers {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil ||
				*s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				n.Errorf("container %s of %s: %+v", c.Name, pod.Name, s)
			}
		}
		if s := pod.Spec.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			n.Errorf("%s: %+v", pod.Name, s)
		}
	}
	if len(nodes) != count {
		n.Errorf("%d load pods are on %d nodes, want one on each of %d", count, len(nodes), count)
	}
}

// takeOne deletes a load pod without grace.
func (n *namespace) takeOne(test string) *corev1.Pod {
	n.Helper()
	pods := n.loadPods(test)
	if len(pods) == 0 {
		n.Fatalf("%s has no load pods", test)
	}
	n.delete(&pods[0], client.GracePeriodSeconds(0))
	return &pods[0]
}

func index(pod *corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }
