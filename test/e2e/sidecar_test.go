//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestClassicSidecar loads from pods that have an ordinary second container, as a mesh without native sidecars injects
// it. With both annotations the load waits for it, and its pod and Job end; without them neither is so, and the result
// comes nevertheless.
func TestClassicSidecar(t *testing.T) {
	t.Parallel()
	n := makeNamespace(t, metav1.ObjectMeta{
		GenerateName: "e2e-sidecar-",
		Labels:       map[string]string{"e2e.redquake.dev/sidecar": "classic"},
	})
	probe := onePod("probe", "x")
	probe.Labels = map[string]string{"redquake.dev/loadtest": "probe"}
	n.underPolicies(probe, func(pod *corev1.Pod, err error) bool {
		return err == nil &&
			len(pod.Spec.Containers) == 2
	}, "testdata/classic-sidecar.yaml")
	n.applyRedis(nil)

	quits, stays := n.smallLoad("quits", 3*time.Second), n.smallLoad("stays", 3*time.Second)
	quits.Spec.Pods.Annotations = map[string]v1alpha1.PodAnnotationValue{
		v1alpha1.AnnotationSidecarReady: "http://localhost:15021/ready",
		v1alpha1.AnnotationSidecarQuit:  "http://localhost:15021/cgi-bin/quit",
	}
	n.create(quits)
	n.create(stays)
	n.eventually(patience, "it waits for the sidecar", func() (bool, string) {
		reason, message, complete, _ := completeReason(n.loadTest(quits.Name).Status.Conditions)
		if complete {
			t.Fatalf("it has ended without having waited: %s: %s", reason, message)
		}
		return reason == v1alpha1.ReasonPreparing &&
			strings.Contains(message, "waits for the sidecar"), reason + ": " + message
	})
	done := n.waitLoadTest(quits.Name, patience, v1alpha1.ReasonSucceeded)
	n.waitLoadTest(stays.Name, patience, v1alpha1.ReasonSucceeded)
	n.sumsAgree(done, n.record(done))
	if s := done.Status.Summary; s.Requests != 600 || s.Errors != 0 {
		t.Errorf("%d requests, %d errors; want 600 and none", s.Requests, s.Errors)
	}

	n.eventually(patience, "the Job has completed", func() (bool, string) {
		var jobs batchv1.JobList
		n.list(&jobs)
		for _, job := range jobs.Items {
			if job.Labels["redquake.dev/loadtest"] == quits.Name {
				return job.Status.Succeeded == 1, asJSON(t, job.Status)
			}
		}
		return false, "there is none"
	})
	for _, c := range n.onlyLoadPod(quits.Name).Status.ContainerStatuses {
		if ended := c.State.Terminated; ended == nil || ended.ExitCode != 0 {
			t.Errorf("container %s: %s, want that it ended by itself", c.Name, asJSON(t, c.State))
		} else if c.Name == "proxy" && done.Status.StartTime.Sub(ended.StartedAt.Time) < 4*time.Second {
			t.Errorf("the load started at %s, the sidecar at %s, ready 5s later", done.Status.StartTime, ended.StartedAt)
		}
	}
	if pod := n.onlyLoadPod(stays.Name); pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod whose sidecar nobody ends is %s, want Running", pod.Status.Phase)
	}
}

func (n *namespace) onlyLoadPod(test string) *corev1.Pod {
	n.Helper()
	pods := n.loadPods(test)
	if len(pods) != 1 {
		n.Fatalf("%s has %d load pods, want one", test, len(pods))
	}
	return &pods[0]
}
