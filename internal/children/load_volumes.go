package children

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
)

// secretMode permits only the owner and the pod's group to read a Secret's file.
const secretMode = int32(0o440)

// planVolume is the name of the volume with the plan.
const planVolume = "plan"

// loadVolumes are the files of a load pod, read-only: the plan, the run's credentials, and of each
// Secret of the target and the workload only the keys that are needed.
func loadVolumes(
	test *v1alpha1.RedisLoadTest, plan string, target *v1alpha1.RedisTarget,
	workload *v1alpha1.Workload,
) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{
		{Name: planVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: plan},
			DefaultMode:          new(secretMode),
			Items:                []corev1.KeyToPath{{Key: PlanKey, Path: PlanKey}},
		}}},
		secretVolume("agent", AgentSecretName(test),
			same(agent.KeyCertificate, agent.KeyPrivateKey, agent.KeyToken)),
	}
	mounts := []corev1.VolumeMount{mount(planVolume, planDir), mount("agent", agentDir)}

	add := func(prefix, passwordDir, caDir, certDir string, auth *v1alpha1.RedisAuth,
		tls *v1alpha1.RedisTLS,
	) {
		if auth != nil {
			volumes = append(volumes, secretVolume(prefix+"password", auth.PasswordSecretRef.Name,
				[]corev1.KeyToPath{{Key: auth.PasswordSecretRef.Key, Path: passwordFile}}))
			mounts = append(mounts, mount(prefix+"password", passwordDir))
		}
		if tls != nil && tls.CASecretRef != nil {
			volumes = append(volumes, secretVolume(prefix+"ca", tls.CASecretRef.Name, same(caKey)))
			mounts = append(mounts, mount(prefix+"ca", caDir))
		}
		if tls != nil && tls.CertSecretRef != nil {
			volumes = append(volumes,
				secretVolume(prefix+"cert", tls.CertSecretRef.Name, same(certKey, privateKey)))
			mounts = append(mounts, mount(prefix+"cert", certDir))
		}
	}
	add("", passwordDir, caDir, certDir, target.Auth, target.TLS)
	if s := target.Sentinel; s != nil {
		add("sentinel-", sentinelPasswordDir, sentinelCADir, sentinelCertDir, s.Auth, s.TLS)
	}
	if workload.CacheAside != nil {
		dsn := workload.CacheAside.Database.DSNSecretRef
		volumes = append(volumes,
			secretVolume("database", dsn.Name, []corev1.KeyToPath{{Key: dsn.Key, Path: dsnFile}}))
		mounts = append(mounts, mount("database", databaseDir))
	}
	return volumes, mounts
}

func secretVolume(name, secret string, items []corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{
		Name: name,
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName:  secret,
			Items:       items,
			DefaultMode: new(secretMode),
		}},
	}
}

// same maps keys to files of the same name.
func same(keys ...string) []corev1.KeyToPath {
	items := make([]corev1.KeyToPath, len(keys))
	for i, key := range keys {
		items[i] = corev1.KeyToPath{Key: key, Path: key}
	}
	return items
}

func mount(name, dir string) corev1.VolumeMount {
	return corev1.VolumeMount{
		Name:      name,
		MountPath: dir,
		ReadOnly:  true,
	}
}

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
					{
						Name:    "set",
						Weight:  1,
						Command: []string{"SET", "{key}", "{value}"},
					},
					{
						Name:    "get",
						Weight:  1,
						Command: []string{"GET", "{key}"},
					},
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
