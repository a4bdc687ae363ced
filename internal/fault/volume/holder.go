package volume

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
	redistarget "github.com/redquake/redquake/internal/target"
)

// holderMargin is how much longer than the delay the holder may run, for the time from its start to
// the kill. Without an operator the volume is released by so much later than specified.
const holderMargin = 2 * time.Minute

// The container of a holder pod, its volume, and where that is mounted.
const (
	holderContainer = "redquake-holder"
	holderVolume    = "held"
	holderPath      = "/held"
)

// holderUser is the user and group of a holder where the target's pod names none.
const holderUser = int64(65534)

// istioInject is a label, and an annotation of older versions, by which Istio injects no sidecar
// into a pod.
const istioInject = "sidecar.istio.io/inject"

var errForeign = errors.New("is not this fault's")

// holders are the holder pods of a fault: one beside each target, on its node, with its volume.
type holders struct {
	contract.Deps
	short string // what the names of the pods say of the fault
	lasts time.Duration
}

// create creates the holder pod of a target, which runs a container with a claim.
func (h holders) create(
	ctx context.Context, target *v1alpha1.FaultTarget, claim string,
	container func(pod *corev1.Pod, redis *corev1.Container) (corev1.Container, *corev1.PodSecurityContext),
	options ...client.CreateOption,
) (contract.Progress, error) {
	pod, err := h.Pod(ctx, target.Pod)
	if err != nil {
		return contract.Progress{}, err
	}
	assigned, err := redistarget.AssignsUserIDs(ctx, h.Live, h.Namespace)
	if err != nil {
		return contract.Progress{}, err
	}
	redis := h.Container(pod)
	runs, security := container(pod, &redis)
	if assigned { // whoever has no user of its own gets one
		security.RunAsUser = unlessDefault(security.RunAsUser)
		security.RunAsGroup = unlessDefault(security.RunAsGroup)
	}
	holder := h.newPod(pod, target, claim, runs)
	holder.Spec.SecurityContext = security
	err = h.Cluster.Create(ctx, holder, options...)
	switch {
	case problem.Refuses(err) && strings.Contains(err.Error(), "PodSecurity"):
		return contract.Progress{}, problem.Unsupported("namespace %s does not admit the holder pod %s: %s",
			h.Namespace, holder.Name, problem.Refusal(err))
	case err != nil && !apierrors.IsAlreadyExists(err):
		return contract.Progress{}, fmt.Errorf("create the holder pod %s: %w", holder.Name, err)
	}
	return contract.Preparing("holder pod %s is created on node %s", holder.Name, target.Node), nil
}

// release deletes the holder, without grace.
func (h holders) release(ctx context.Context, target *v1alpha1.FaultTarget) error {
	holder, err := h.pod(ctx, target)
	if apierrors.IsNotFound(err) || errors.Is(err, errForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	return pods.Remove(ctx, h.Deps, holder)
}

// pod reads the holder pod of a target. A pod of that name with another owner is an error.
func (h holders) pod(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (*corev1.Pod, error) {
	holder, err := h.Pod(ctx, h.name(target))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(holder.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == h.Owner.UID
	}) {
		return nil, fmt.Errorf("pod %s %w: delete it, or give the fault another name", holder.Name,
			errForeign)
	}
	return holder, nil
}

// newPod is a pod beside the target, with the target's volume. It is assigned to the node by name, so
// that a taint does not affect it; it has no token, and no fsGroup, by which the kubelet would change
// the owner of the target's files.
func (h holders) newPod(
	pod *corev1.Pod, target *v1alpha1.FaultTarget, claim string, container corev1.Container,
) *corev1.Pod {
	small := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	if container.Resources.Limits == nil {
		container.Resources = corev1.ResourceRequirements{Requests: small, Limits: small}
	}
	container.Name, container.ImagePullPolicy = holderContainer, corev1.PullIfNotPresent
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       h.Namespace,
			Name:            h.name(target),
			OwnerReferences: []metav1.OwnerReference{h.Owner},
			Labels: map[string]string{
				v1alpha1.LabelName:      "redquake",
				v1alpha1.LabelManagedBy: "redquake",
				v1alpha1.LabelComponent: "volume-holder",
				v1alpha1.LabelFault:     h.Owner.Name,
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
			ActiveDeadlineSeconds:         new(h.ends()),
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			ImagePullSecrets:              pod.Spec.ImagePullSecrets,
			Tolerations:                   pod.Spec.Tolerations,
			Containers:                    []corev1.Container{container},
			Volumes: []corev1.Volume{{Name: holderVolume, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
}

// ends is after how many seconds the kubelet ends a holder pod by itself.
func (h holders) ends() int64 {
	return int64((h.lasts + holderMargin) / time.Second)
}

// name is unique for the UID of the target's pod.
func (h holders) name(target *v1alpha1.FaultTarget) string {
	hash := sha256.Sum256([]byte(target.UID))
	// at most 60 characters: a fault's name has 46
	return fmt.Sprintf("%s-%s-%x", h.Owner.Name, h.short, hash[:4])
}

// holderSecurity is what the restricted Pod Security Standard asks for, with the target's user and
// SELinux label where it has them.
func holderSecurity(pod *corev1.Pod, redis *corev1.Container) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(holderUser),
		RunAsGroup:     new(holderUser),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
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

// unprivileged is what the restricted Pod Security Standard asks of a container.
func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// unlessDefault is a user or a group that the target has; nil where that is ours.
func unlessDefault(id *int64) *int64 {
	if id != nil && *id == holderUser {
		return nil
	}
	return id
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
