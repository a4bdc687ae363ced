package children

import (
	corev1 "k8s.io/api/core/v1"

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
	return corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true}
}
