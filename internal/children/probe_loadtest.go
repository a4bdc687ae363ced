package children

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

const (
	// probeRate is low enough not to affect other clients, and measures an outage to about 5 ms.
	probeRate = 200
	// probeKeys are few, so that they do not affect the server's memory.
	probeKeys = 100
	// probeMargin is how much longer the load lasts than its fault at most: it waits for the load's
	// warm-up, and then for its record.
	probeMargin = time.Minute
	// maxLoadDuration is the most that the CRD allows for spec.load.duration.
	maxLoadDuration = 168 * time.Hour
)

// ProbeLoadTest is the small open-loop load that measures a fault without loadTestRef: 200 SET and
// GET per second from one pod. fault.spec.target must be set, which admission ensures. The load is
// as long as the fault can exist, its recovery included, and at most the 168h that a load may take;
// its owner ends it before.
func ProbeLoadTest(fault *v1alpha1.RedisFault) *v1alpha1.RedisLoadTest {
	return &v1alpha1.RedisLoadTest{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisLoadTest"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      ProbeName(fault.Name),
			Namespace: fault.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelName:      nameLabelValue,
				v1alpha1.LabelComponent: ComponentProbe,
				v1alpha1.LabelManagedBy: managedBy,
				v1alpha1.LabelFault:     fault.Name,
			},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(fault, v1alpha1.GroupVersion.WithKind("RedisFault")),
			},
		},
		Spec: v1alpha1.RedisLoadTestSpec{
			Target: *fault.Spec.Target.DeepCopy(),
			Client: v1alpha1.LoadClient{Connections: 20},
			Load: v1alpha1.LoadShape{
				Rate:     new(int32(probeRate)),
				Duration: &metav1.Duration{Duration: probeLength(&fault.Spec)},
			},
			Workload: v1alpha1.Workload{
				Commands: []v1alpha1.WorkloadCommand{
					{Name: "set", Weight: 1, Command: []string{"SET", "{key}", "{value}"}},
					{Name: "get", Weight: 1, Command: []string{"GET", "{key}"}},
				},
				Keyspace: v1alpha1.Keyspace{
					Prefix: "rq:" + fault.Name + ":",
					Keys:   probeKeys,
					TTL:    &metav1.Duration{Duration: time.Hour},
				},
			},
			Pods: v1alpha1.LoadPods{Count: 1, LoadPodTemplate: value(fault.Spec.ProbePods.DeepCopy())},
		},
	}
}

// probeLength is the longest time from the load's start to the fault's end: it may wait for other
// faults, take steps, stay for its duration, and be reverted in steps, until its deadline.
func probeLength(fault *v1alpha1.RedisFaultSpec) time.Duration {
	return min(fault.DeadlineAfter()+fault.RecoveryDeadline.Duration+probeMargin, maxLoadDuration)
}
