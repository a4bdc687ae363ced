package volume

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	redistarget "github.com/redquake/redquake/internal/target"
)

// holderMargin is how much longer than the delay the holder may run, for the time from its start to
// the kill. Without an operator the volume is released by so much later than specified.
const holderMargin = 2 * time.Minute

const holderContainer = "holder"

// holderUser is the user and group of a holder where the target's pod names none.
const holderUser = int64(65534)

// istioInject is a label, and an annotation of older versions, by which Istio injects no sidecar
// into a pod.
const istioInject = "sidecar.istio.io/inject"

var errForeign = errors.New("is not this fault's")

// hold creates the holder pod, and is complete once it runs.
func (v volumeAttachDelay) hold(
	ctx context.Context, target *v1alpha1.FaultTarget, claim string,
) (contract.Progress, error) {
	holder, err := v.holder(ctx, target)
	if apierrors.IsNotFound(err) {
		pod, err := v.Pod(ctx, target.Pod)
		if err != nil {
			return contract.Progress{}, err
		}
		assigned, err := redistarget.AssignsUserIDs(ctx, v.Live, v.Namespace)
		if err != nil {
			return contract.Progress{}, err
		}
		holder = v.newHolder(pod, target, claim, assigned)
		err = v.Cluster.Create(ctx, holder)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return contract.Progress{}, fmt.Errorf("create the holder pod %s: %w", holder.Name, err)
		}
		return contract.Preparing("holder pod %s is created on node %s", holder.Name, target.Node), nil
	}
	if err != nil {
		return contract.Progress{}, err
	}
	switch holder.Status.Phase {
	case corev1.PodRunning:
		return contract.Progress{}, v.inTime(holder)
	case corev1.PodFailed, corev1.PodSucceeded:
		return contract.Progress{}, fmt.Errorf(
			"holder pod %s ended by itself%s: its image needs sh and sleep; name another in "+
				"spec.action.volumeAttachDelay.image", holder.Name, whyEnded(holder))
	}
	return contract.Preparing("holder pod %s does not run yet%s", holder.Name, whyWaiting(holder)), nil
}

// inTime refuses a holder that used up its margin before it ran, such as on the download of its
// image.
func (volumeAttachDelay) inTime(holder *corev1.Pod) error {
	at := slices.IndexFunc(holder.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == holderContainer && c.State.Running != nil
	})
	if holder.Status.StartTime == nil || at < 0 {
		return nil
	}
	took := holder.Status.ContainerStatuses[at].State.Running.StartedAt.Sub(
		holder.Status.StartTime.Time)
	if took > holderMargin/2 {
		return fmt.Errorf(
			"holder pod %s took %s to start: its deadline would end the fault too early. Try again, now "+
				"that its image is on the node", holder.Name, took)
	}
	return nil
}

// release deletes the holder, without grace.
func (v volumeAttachDelay) release(ctx context.Context, target *v1alpha1.FaultTarget) error {
	holder, err := v.holder(ctx, target)
	if apierrors.IsNotFound(err) || errors.Is(err, errForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	return pods.Remove(ctx, v.Deps, holder)
}

// holder reads the fault's pod on the target's node. A pod of that name with another owner is an
// error.
func (v volumeAttachDelay) holder(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (*corev1.Pod, error) {
	holder, err := v.Pod(ctx, v.holderName(target))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(holder.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == v.Owner.UID
	}) {
		return nil, fmt.Errorf("pod %s %w: delete it, or give the fault another name", holder.Name,
			errForeign)
	}
	return holder, nil
}

// newHolder is a pod that sleeps beside the target, with the target's volume. It is assigned to the
// node by name, so that a taint does not affect it; it has no token, no privileges and a read-only
// file system; and no fsGroup, by which the kubelet would change the owner of the target's files.
func (v volumeAttachDelay) newHolder(
	pod *corev1.Pod, target *v1alpha1.FaultTarget, claim string, assigned bool,
) *corev1.Pod {
	redis := v.Container(pod)
	ends := int64((v.lasts + holderMargin) / time.Second)
	small := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       v.Namespace,
			Name:            v.holderName(target),
			OwnerReferences: []metav1.OwnerReference{v.Owner},
			Labels: map[string]string{
				v1alpha1.LabelName:      "redquake",
				v1alpha1.LabelManagedBy: "redquake",
				v1alpha1.LabelComponent: "volume-holder",
				v1alpha1.LabelFault:     v.Owner.Name,
				istioInject:             "false",
			},
			Annotations: map[string]string{
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
				"karpenter.sh/do-not-disrupt":                    "true",
				istioInject:                                      "false",
				"linkerd.io/inject":                              "disabled", // it has no connections
			},
		},
		Spec: corev1.PodSpec{
			NodeName:                      target.Node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &ends,
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			ImagePullSecrets:              pod.Spec.ImagePullSecrets,
			Tolerations:                   pod.Spec.Tolerations,
			SecurityContext:               holderSecurity(pod, &redis, assigned),
			Containers: []corev1.Container{{
				Name:            holderContainer,
				Image:           cmp.Or(v.image, redis.Image),
				ImagePullPolicy: corev1.PullIfNotPresent,
				// Process 1 ignores SIGTERM without the trap, and the volume would be released a second or two
				// later.
				Command:   []string{"sh", "-c", fmt.Sprintf("trap 'exit 0' TERM; sleep %d & wait", ends)},
				Resources: corev1.ResourceRequirements{Requests: small, Limits: small},
				VolumeMounts: []corev1.VolumeMount{{
					Name:      "held",
					MountPath: "/held",
					ReadOnly:  true,
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					ReadOnlyRootFilesystem:   new(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "held", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
}

// holderName is unique for the UID of the target's pod.
func (v volumeAttachDelay) holderName(target *v1alpha1.FaultTarget) string {
	hash := sha256.Sum256([]byte(target.UID))
	// at most 60 characters: a fault's name has 46
	return fmt.Sprintf("%s-hold-%x", v.Owner.Name, hash[:4])
}

// holderSecurity is what the restricted Pod Security Standard asks for, with the target's user and
// SELinux label where it has them. A namespace that assigns users assigns one to the holder as
// well.
func holderSecurity(
	pod *corev1.Pod, redis *corev1.Container, assigned bool,
) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !assigned {
		security.RunAsUser, security.RunAsGroup = new(holderUser), new(holderUser)
	}
	user := func(user, group *int64, label *corev1.SELinuxOptions) {
		if user != nil && *user != 0 {
			security.RunAsUser = user
		}
		if group != nil && *group != 0 {
			security.RunAsGroup = group
		}
		if label != nil {
			security.SELinuxOptions = label
		}
	}
	if of := pod.Spec.SecurityContext; of != nil {
		user(of.RunAsUser, of.RunAsGroup, of.SELinuxOptions)
	}
	if of := redis.SecurityContext; of != nil {
		user(of.RunAsUser, of.RunAsGroup, of.SELinuxOptions)
	}
	return security
}

// whyWaiting is the kubelet's reason why a container does not run yet.
func whyWaiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return fmt.Sprintf(": %s %s", w.Reason, w.Message)
		}
	}
	return ""
}

// whyEnded is the kubelet's reason why a pod ended.
func whyEnded(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf(" (%s, exit code %d) %s", t.Reason, t.ExitCode, t.Message)
		}
	}
	if pod.Status.Reason != "" {
		return fmt.Sprintf(" (%s) %s", pod.Status.Reason, pod.Status.Message)
	}
	return ""
}
