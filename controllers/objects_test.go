package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

func length(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// newLoadTest is an open loop of 200 requests/s for two seconds from one pod.
func newLoadTest(name, address string, change func(*v1alpha1.RedisLoadTest)) *v1alpha1.RedisLoadTest {
	test := &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisLoadTestSpec{
			Target: v1alpha1.RedisTarget{
				Addresses:   []string{address},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			},
			Client: v1alpha1.LoadClient{Connections: 5},
			Load:   v1alpha1.LoadShape{Rate: new(int32(200)), Duration: length(2 * time.Second)},
			Workload: v1alpha1.Workload{
				Commands: []v1alpha1.WorkloadCommand{
					{Name: "set", Weight: 1, Command: []string{"SET", "{key}", "{value}"}},
					{Name: "get", Weight: 3, Command: []string{"GET", "{key}"}},
				},
				Keyspace: v1alpha1.Keyspace{Keys: 100},
			},
			Observe: v1alpha1.LoadObserve{Interval: metav1.Duration{Duration: 50 * time.Millisecond}},
		},
	}
	if change != nil {
		change(test)
	}
	return test
}

// newFault is a fault of a load test's Redis, two seconds after the load's start.
func newFault(name, test string, kind v1alpha1.FaultType, change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	f := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: test}, Action: v1alpha1.Action{Type: kind},
			Select:           v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
			Trigger:          v1alpha1.FaultTrigger{After: length(2 * time.Second)},
			Allow:            []v1alpha1.Allowance{v1alpha1.AllowDataLoss}, // the servers of most tests write nothing to a disk
			RecoveryDeadline: metav1.Duration{Duration: 20 * time.Second},
		},
	}
	if change != nil {
		change(f)
	}
	return f
}
