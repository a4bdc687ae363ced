package operatortest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Length is a duration of a spec.
func Length(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}

// NewLoadTest is an open loop of 200 requests/s for two seconds from one pod.
func NewLoadTest(
	name, address string, change func(*v1alpha1.RedisLoadTest),
) *v1alpha1.RedisLoadTest {
	test := &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisLoadTestSpec{
			Target: v1alpha1.RedisTarget{
				Addresses:   []string{address},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			},
			Client: v1alpha1.LoadClient{Connections: 5},
			Load:   v1alpha1.LoadShape{Rate: new(int32(200)), Duration: Length(2 * time.Second)},
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

// NewFault is a fault of a load test's Redis, two seconds after the load's start.
func NewFault(
	name, test string, kind v1alpha1.FaultType, change func(*v1alpha1.RedisFault),
) *v1alpha1.RedisFault {
	f := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: test}, Action: v1alpha1.Action{Type: kind},
			Select:  v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
			Trigger: v1alpha1.FaultTrigger{After: Length(2 * time.Second)},
			// the servers of most tests write nothing to a disk
			Allow:            []v1alpha1.Allowance{v1alpha1.AllowDataLoss},
			RecoveryDeadline: metav1.Duration{Duration: 20 * time.Second},
		},
	}
	if change != nil {
		change(f)
	}
	return f
}

// WithTolerance sets timeouts that a stall of the machine for a second does not exceed.
func WithTolerance(test *v1alpha1.RedisLoadTest) {
	test.Spec.Client.RequestTimeout = metav1.Duration{Duration: 10 * time.Second}
}

// SearchFor returns a search with a known result: each request in flight takes 100 ms, which limits
// the rate to 10/s each.
func SearchFor(inFlight int32) func(test *v1alpha1.RedisLoadTest) {
	return func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Client.Connections = inFlight
		test.Spec.Client.AddedLatency = &metav1.Duration{Duration: 100 * time.Millisecond}
		test.Spec.Client.RequestTimeout = metav1.Duration{Duration: time.Second}
		test.Spec.Load = v1alpha1.LoadShape{
			Users: new(inFlight), Duration: Length(5 * time.Minute), WarmUp: Length(time.Second),
			Search: &v1alpha1.LoadSearch{
				From:      20,
				To:        1000,
				Precision: "20%",
				Trial:     metav1.Duration{Duration: 2 * time.Second},
				Settle:    metav1.Duration{Duration: 500 * time.Millisecond},
			},
		}
		test.Spec.Objectives = &v1alpha1.Objectives{
			MaxLatencyP50: &metav1.Duration{Duration: 300 * time.Millisecond},
			MinThroughput: new("30"),
		}
	}
}

// PasswordSecret is the Secret that WithPassword refers to.
func PasswordSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "auth"},
		StringData: map[string]string{"password": "s3cret\n"},
	}
}

// WithPassword is a login by the password of PasswordSecret.
func WithPassword() *v1alpha1.RedisAuth {
	return &v1alpha1.RedisAuth{
		PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: "password"},
	}
}

// NamedTest is a load test of which only the name is known.
func NamedTest(name string) *v1alpha1.RedisLoadTest {
	return &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
