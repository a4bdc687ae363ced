//go:build e2e

package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// samples is the folder of the manifests that users are given: the tests run those.
const samples = "../../config/samples"

// sample reads the first object of a file of config/samples: others are faults on it.
func (n *namespace) sample(file string, object client.Object) {
	n.Helper()
	n.sampleOf(file, 0, object)
}

// sampleOf reads one of the objects of a file of config/samples.
func (n *namespace) sampleOf(file string, number int, object client.Object) {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(samples, file))
	if err != nil {
		n.Fatal(err)
	}
	objects := bytes.Split(text, []byte("\n---\n"))
	if err := yaml.UnmarshalStrict(objects[number], object); err != nil {
		n.Fatalf("%s: %v", file, err)
	}
}

// sampleLoad is the load test of config/samples/loadtest.yaml, shortened, and with a rate that a busy machine manages,
// too.
func (n *namespace) sampleLoad(name string, rampUp, warmUp, duration time.Duration) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := &v1alpha1.RedisLoadTest{}
	n.sample("loadtest.yaml", test)
	test.Name = name
	test.Spec.Load.Rate = new(int32(500))
	test.Spec.Client.DialTimeout = *span(10 * time.Second) // longer than the 5 s after which a resolver retries
	test.Spec.Load.RampUp, test.Spec.Load.WarmUp, test.Spec.Load.Duration = span(rampUp), span(warmUp), span(duration)
	test.Spec.Load.UntilFaultsSettle = nil // requests are counted
	// How long the cluster takes to replace a pod (6 to 9 s if its volume moves to the other node) is not tested here.
	test.Spec.Objectives.MaxErrorRate = new("60%")
	return test
}

// smallLoad is a load for tests that measure nothing.
func (n *namespace) smallLoad(name string, duration time.Duration) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := n.sampleLoad(name, 0, 0, duration)
	test.Spec.Load.RampUp, test.Spec.Load.WarmUp = nil, nil
	test.Spec.Load.Rate, test.Spec.Client.Connections = new(int32(200)), 4
	test.Spec.Workload.Keyspace.Keys, test.Spec.Pods.Count, test.Spec.Objectives = 100, 1, nil
	return test
}

// sampleKill is the fault of config/samples/podkill.yaml.
func (n *namespace) sampleKill(name, test string) *v1alpha1.RedisFault {
	n.Helper()
	fault := &v1alpha1.RedisFault{}
	n.sample("podkill.yaml", fault)
	fault.Name, fault.Spec.LoadTestRef.Name = name, test
	// A kubelet tries a mount again after 0.5, 1, 2, 4, 8 and 16 s, so after 31.5 s in all.
	fault.Spec.RecoveryDeadline = *span(60 * time.Second)
	fault.Spec.Trigger.Timeout = *span(time.Minute) // to find the load steady
	return fault
}

func span(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// completeReason returns reason and message of the condition Complete, and whether the object has completed or failed.
func completeReason(conditions []metav1.Condition) (reason, message string, complete, failed bool) {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete); c != nil {
		reason, message = c.Reason, c.Message
	}
	return reason, message, meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete),
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed)
}

func (n *namespace) loadTest(name string) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := &v1alpha1.RedisLoadTest{}
	if !n.get(name, test) {
		n.Fatalf("there is no RedisLoadTest %s", name)
	}
	return test
}

func (n *namespace) fault(name string) *v1alpha1.RedisFault {
	n.Helper()
	fault := &v1alpha1.RedisFault{}
	if !n.get(name, fault) {
		n.Fatalf("there is no RedisFault %s", name)
	}
	return fault
}

// waitLoadTest waits until a load test has one of the reasons. It fails at once if the test ends with another one.
func (n *namespace) waitLoadTest(name string, within time.Duration, reasons ...string) *v1alpha1.RedisLoadTest {
	n.Helper()
	var test *v1alpha1.RedisLoadTest
	n.stands(&v1alpha1.RedisLoadTestList{}, name, within, reasons, func() []metav1.Condition {
		test = n.loadTest(name)
		return test.Status.Conditions
	})
	return test
}

// waitFault is the same for a fault.
func (n *namespace) waitFault(name string, within time.Duration, reasons ...string) *v1alpha1.RedisFault {
	n.Helper()
	var fault *v1alpha1.RedisFault
	n.stands(&v1alpha1.RedisFaultList{}, name, within, reasons, func() []metav1.Condition {
		fault = n.fault(name)
		return fault.Status.Conditions
	})
	return fault
}

func (n *namespace) stands(
	kind client.ObjectList, name string, within time.Duration, reasons []string, conditions func() []metav1.Condition,
) {
	n.Helper()
	n.watched(within, fmt.Sprintf("%s has one of the reasons %v", name, reasons), kind, name, func() (bool, string) {
		reason, message, complete, failed := completeReason(conditions())
		for _, wanted := range reasons {
			if reason == wanted {
				return true, ""
			}
		}
		if complete || failed {
			n.Fatalf("%s is over (complete %v, failed %v) as %s: %s; want %v", name, complete, failed, reason, message, reasons)
		}
		return false, reason + ": " + message
	})
}
