//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// TestLoadTestLifecycle suspends, aborts, expires and deletes load tests, several at a time: nothing is measured here.
func TestLoadTestLifecycle(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "lifecycle")
	n.applyRedis(nil)
	n.inParallel(map[string]func(*namespace){
		"suspend": suspendAndResume, "abort": abortMidRun, "abort-before-start": abortBeforeStart, "ttl": expire,
		"delete-preparing": deletePreparing, "delete-running": deleteRunning, "delete-finished": deleteFinished,
	})
}

func suspendAndResume(n *namespace) {
	test := n.smallLoad("held", 8*time.Second)
	test.Spec.Suspend = true
	n.create(test)
	held := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSuspended)
	if !meta.IsStatusConditionTrue(held.Status.Conditions, v1alpha1.ConditionSuspended) {
		n.Error("the condition Suspended is not True")
	}
	await.Pass(2*time.Second, "the operator would create something meanwhile")
	if left := n.children(test.Name); len(left) > 0 {
		n.Errorf("a test that was suspended from the start has %v", left)
	}

	n.patch(held, `{"spec":{"suspend":false}}`)
	running := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRunning)
	n.requestsReach(test.Name, 1)
	n.patch(running, `{"spec":{"suspend":true}}`)
	again := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSuspended)
	if again.Status.StartTime != nil || again.Status.Summary != nil {
		n.Errorf("a suspended test kept its run: startTime %v, summary %v", again.Status.StartTime, again.Status.Summary)
	}
	n.eventually(patience, "a suspended test's pods are deleted", func() (bool, string) {
		return len(n.loadPods(test.Name)) == 0, "not yet"
	})

	n.patch(again, `{"spec":{"suspend":false}}`)
	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRunning)
	done := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSucceeded)
	if meta.IsStatusConditionTrue(done.Status.Conditions, v1alpha1.ConditionSuspended) {
		n.Error("the condition Suspended is still True")
	}
	series := n.record(done)
	n.sumsAgree(done, series)
	n.recordIsWhole(done, series) // the second run alone, from its beginning
}

func abortMidRun(n *namespace) {
	test := n.smallLoad("aborted", time.Minute)
	n.create(test)
	running := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRunning)
	n.requestsReach(test.Name, 600)
	n.patch(running, `{"spec":{"abort":true}}`)
	var done *v1alpha1.RedisLoadTest
	n.eventually(patience, "the test is complete", func() (bool, string) {
		done = n.loadTest(test.Name)
		reason, message, complete, _ := completeReason(done.Status.Conditions)
		return complete, reason + ": " + message
	})
	if reason, message, _, _ := completeReason(done.Status.Conditions); reason != v1alpha1.ReasonAborted {
		n.Errorf("complete as %s: %s; want Aborted", reason, message)
	}
	if s := done.Status.Summary; s == nil || s.Requests < 600 || s.Requests >= 200*60 { // at 200 requests/s
		n.Errorf("the summary of an aborted test: %+v, want the figures of 3 s and some, not of a minute", s)
	}
	if done.Status.Verdict != v1alpha1.VerdictInconclusive {
		n.Errorf("verdict %s, want Inconclusive", done.Status.Verdict)
	}
	n.sumsAgree(done, n.record(done))
	n.eventually(patience, "an aborted test's pods have ended", n.podsHaveEnded(test.Name))
}

// requestsReach waits until a running test's status counts this many requests.
func (n *namespace) requestsReach(test string, least int64) {
	n.Helper()
	n.watched(patience, "requests are counted", &v1alpha1.RedisLoadTestList{}, test, func() (bool, string) {
		s := n.loadTest(test).Status.Summary
		return s != nil && s.Requests >= least, fmt.Sprintf("%+v", s)
	})
}

func abortBeforeStart(n *namespace) {
	test := n.smallLoad("never-began", time.Minute)
	test.Spec.Pods.NodeSelector = map[string]string{"e2e.redquake.dev/none": "here"}
	n.create(test)
	waiting := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonPreparing)
	n.patch(waiting, `{"spec":{"abort":true}}`)
	var done *v1alpha1.RedisLoadTest
	n.eventually(patience, "the test is complete", func() (bool, string) {
		done = n.loadTest(test.Name)
		reason, message, complete, _ := completeReason(done.Status.Conditions)
		return complete && reason == v1alpha1.ReasonAborted, reason + ": " + message
	})
	n.eventually(patience, "its pods are deleted", func() (bool, string) {
		return len(n.loadPods(test.Name)) == 0,
			"not yet"
	})
}

func expire(n *namespace) {
	test := n.smallLoad("short-lived", 2*time.Second)
	test.Spec.TTLSecondsAfterFinished = new(int32(3))
	n.create(test)
	done := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSucceeded)
	n.eventually(patience, "the test is deleted", func() (bool, string) {
		return !n.get(test.Name, &v1alpha1.RedisLoadTest{}), "not yet"
	})
	if after := time.Since(done.Status.CompletionTime.Time); after < 2900*time.Millisecond {
		n.Errorf("deleted %s after its end, want at least 3s", after)
	}
	n.childrenGo(test.Name)
}

func deletePreparing(n *namespace) {
	test := n.smallLoad("gone-preparing", time.Minute)
	n.create(test)
	n.eventually(patience, "it has a pod", func() (bool, string) { return len(n.loadPods(test.Name)) > 0, "none" })
	n.delete(test)
	n.childrenGo(test.Name)
}

func deleteRunning(n *namespace) {
	test := n.smallLoad("gone-running", time.Minute)
	n.create(test)
	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRunning)
	n.delete(test)
	n.childrenGo(test.Name)
}

func deleteFinished(n *namespace) {
	test := n.smallLoad("gone-finished", 2*time.Second)
	n.create(test)
	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSucceeded)
	if len(n.children(test.Name)) == 0 {
		n.Error("a finished test has no children: its results at least must be there")
	}
	n.delete(test)
	n.childrenGo(test.Name)
}

// children are a load test's Jobs, pods, Secrets and ConfigMaps.
func (n *namespace) children(test string) []string {
	n.Helper()
	var names []string
	for kind, list := range map[string]client.ObjectList{
		"Job":       &batchv1.JobList{},
		"Pod":       &corev1.PodList{},
		"Secret":    &corev1.SecretList{},
		"ConfigMap": &corev1.ConfigMapList{},
	} {
		n.list(list, client.MatchingLabels{v1alpha1.LabelLoadTest: test})
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, kind+" "+o.(client.Object).GetName())
			return nil
		}); err != nil {
			n.Fatal(err)
		}
	}
	return names
}

// childrenGo waits until nothing of a deleted test is left.
func (n *namespace) childrenGo(test string) {
	n.Helper()
	began := time.Now()
	n.eventually(patience, "nothing is left of "+test, func() (bool, string) {
		left := n.children(test)
		return len(left) == 0 && !n.get(test, &v1alpha1.RedisLoadTest{}), strings.Join(left, ", ")
	})
	n.Logf("nothing was left of %s after %s", test, time.Since(began).Round(100*time.Millisecond))
}

// podsHaveEnded reports whether no load pod of a test runs any more.
func (n *namespace) podsHaveEnded(test string) func() (bool, string) {
	return func() (bool, string) {
		for _, pod := range n.loadPods(test) {
			if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
				return false, pod.Name + " is " + string(pod.Status.Phase)
			}
		}
		return true, ""
	}
}
