//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestLoadPodsThatNeverCome makes load pods fail to start, and expects the cluster's message in the status.
func TestLoadPodsThatNeverCome(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "neverstart")
	n.applyRedis(nil)
	cases := []struct {
		name  string
		edit  func(*v1alpha1.RedisLoadTest)
		words []string
	}{
		{
			"no-image",
			func(test *v1alpha1.RedisLoadTest) { test.Spec.Pods.Image = "127.0.0.1:1/none:1" },
			[]string{"ImagePull", "127.0.0.1:1/none:1"},
		},
		{
			"no-client-image",
			func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Client.Driver, test.Spec.Client.Image = "Jedis", "127.0.0.1:1/client:1"
			},
			[]string{"ImagePull", "127.0.0.1:1/client:1"},
		},
		{"no-node", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.NodeSelector = map[string]string{"e2e.redquake.dev/none": "here"}
		}, []string{"is not scheduled", "node"}},
	}
	// Nothing listens on port 1: that pull is refused at once, while one that needs a name server may hang.
	for _, c := range cases {
		test := n.smallLoad(c.name, 5*time.Second)
		test.Spec.Pods.StartDeadline = *span(20 * time.Second)
		c.edit(test)
		n.create(test)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { n.in(t).failsToStart(c.name, c.words...) })
	}
	t.Run("no-quota", func(t *testing.T) {
		n := n.in(t)
		n.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-more-pods"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
		}})
		quota := &corev1.ResourceQuota{}
		n.eventually(patience, "the quota is in force", func() (bool, string) {
			n.get("no-more-pods", quota)
			return len(quota.Status.Hard) > 0, ""
		})
		test := n.smallLoad("no-quota", 5*time.Second)
		test.Spec.Pods.StartDeadline = *span(20 * time.Second)
		n.create(test)
		n.failsToStart("no-quota", "exceeded quota", "no-more-pods")
	})
}

// failsToStart waits for the end of a start deadline of 20 s, and for the failed test's pods to be deleted.
func (n *namespace) failsToStart(name string, words ...string) {
	n.Helper()
	test := n.fails(name, patience, v1alpha1.ReasonStartDeadline, append(words, "spec.pods.startDeadline")...)
	if took := test.Status.CompletionTime.Sub(test.CreationTimestamp.Time); took < 19*time.Second { // whole seconds
		n.Errorf("%s failed after %s, before its deadline of 20s", name, took)
	}
	if test.Status.StartTime != nil {
		n.Errorf("%s has started at %s", name, test.Status.StartTime)
	}
	n.eventually(patience, "the load pods of "+name+" are deleted", func() (bool, string) {
		return len(n.loadPods(name)) == 0, "still there"
	})
}

// fails waits until a load test has failed for a reason, with all words in its message.
func (n *namespace) fails(name string, within time.Duration, reason string, words ...string) *v1alpha1.RedisLoadTest {
	n.Helper()
	var test *v1alpha1.RedisLoadTest
	n.watched(within, name+" fails", &v1alpha1.RedisLoadTestList{}, name, func() (bool, string) {
		test = n.loadTest(name)
		is, message, complete, failed := completeReason(test.Status.Conditions)
		if complete {
			n.Fatalf("%s is complete: %s: %s", name, is, message)
		}
		return failed, is + ": " + message
	})
	is, message, _, _ := completeReason(test.Status.Conditions)
	n.Logf("%s after %.0f s: %s: %s", name, test.Status.CompletionTime.Sub(test.CreationTimestamp.Time).Seconds(), is,
		message)
	if is != reason {
		n.Errorf("%s failed as %s, want %s", name, is, reason)
	}
	for _, word := range words {
		if !strings.Contains(message, word) {
			n.Errorf("%s: the message has no %q: %s", name, word, message)
		}
	}
	return test
}
