// Package volume implements the faults of volumes: VolumeAttachDelay, VolumeLoss and DiskFull.
package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/node"
	pods "github.com/redquake/redquake/internal/fault/pod"
)

// Kinds are the faults of volumes.
var Kinds = contract.Kinds{
	v1alpha1.FaultVolumeAttachDelay: newVolumeAttachDelay,
	v1alpha1.FaultVolumeLoss:        newVolumeLoss,
	v1alpha1.FaultDiskFull:          newDiskFull,
}

// volumeAttachDelay kills a pod whose volume stays attached to the old node: a holder pod there
// uses it, too, and a taint keeps new pods off the node meanwhile. The replacement gets the
// attach-detach controller's Multi-Attach error until the holder is deleted. The holder's deadline
// ends it even without an operator; the taint is recorded on the node itself.
type volumeAttachDelay struct {
	contract.Deps
	lasts    time.Duration
	keepAway v1alpha1.KeepAway
	image    string // of the holder; "" = that of the target's container
}

var _ contract.Follower = volumeAttachDelay{}

func newVolumeAttachDelay(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.VolumeAttachDelay, v1alpha1.VolumeAttachDelay{})
	return volumeAttachDelay{
		Deps:     deps,
		lasts:    spec.Stays(),
		keepAway: cmp.Or(given.KeepAway, v1alpha1.KeepAwayTaint),
		image:    given.Image,
	}
}

// heldRecord is the record of a pod whose volume is held.
type heldRecord struct {
	Controller pods.Controller `json:"controller"`
	Claim      string          `json:"claim"`
	Volume     string          `json:"volume"`
	// name of the VolumeAttachment to the target's node; an earlier version did not record it
	Attachment string `json:"attachment,omitempty"`
}

func (v volumeAttachDelay) Traits() contract.Traits {
	return contract.Traits{
		Lasts:      v.lasts,
		EndsServer: true,
		Abrupt:     true,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
		Taints:     v.taints(),
	}
}

func (v volumeAttachDelay) taints() bool {
	return v.keepAway == v1alpha1.KeepAwayTaint
}

func (v volumeAttachDelay) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := v.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if err := pods.RequireController(pod); err != nil {
		return err
	}
	held, err := v.heldVolume(ctx, pod, target.Container)
	if err != nil {
		return err
	}
	if v.taints() {
		if err := node.RequireRepelled(v.Deps, pod); err != nil {
			return err
		}
	}
	err = node.RequireOtherNode(ctx, v.Deps, pod, held.volume, target.Node)
	// without a taint no right on nodes is needed
	unchecked := !v.taints() && apierrors.IsForbidden(err)
	if err != nil && !unchecked {
		return err
	}
	return contract.Save(target, heldRecord{
		Controller: pods.ControllerOf(pod),
		Claim:      held.claim,
		Volume:     held.volume.Name,
		Attachment: held.attachment,
	})
}

func (v volumeAttachDelay) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return pods.Ended(ctx, v.Deps, target)
}

// Inject has three steps, each of which a later call skips once it is done: start the holder, taint
// the node, kill the pod.
func (v volumeAttachDelay) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, _, err := contract.Load[heldRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	ended, err := pods.Ended(ctx, v.Deps, target)
	if ended || err != nil {
		return contract.Progress{}, err
	}
	progress, err := v.hold(ctx, target, record.Claim)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	if v.taints() {
		progress, err := v.keepOff(ctx, target)
		if err != nil || !progress.Complete() {
			return progress, err
		}
	}
	return contract.Progress{}, pods.RemoveTarget(ctx, v.Deps, target)
}

// hold creates the holder pod, and is complete once it runs.
func (v volumeAttachDelay) hold(
	ctx context.Context, target *v1alpha1.FaultTarget, claim string,
) (contract.Progress, error) {
	holder, err := v.holders().pod(ctx, target)
	if apierrors.IsNotFound(err) {
		return v.holders().create(ctx, target, claim, v.sleeper)
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

// holders are the pods that hold the volumes.
func (v volumeAttachDelay) holders() holders {
	return holders{Deps: v.Deps, short: "hold", lasts: v.lasts}
}

// sleeper is a container that sleeps with a volume, without privileges.
func (v volumeAttachDelay) sleeper(
	pod *corev1.Pod, redis *corev1.Container,
) (corev1.Container, *corev1.PodSecurityContext) {
	return corev1.Container{
		Image: cmp.Or(v.image, redis.Image),
		// Process 1 ignores SIGTERM without the trap, and the volume would be released a second or two
		// later.
		Command: []string{
			"sh", "-c", fmt.Sprintf("trap 'exit 0' TERM; sleep %d & wait", v.holders().ends()),
		},
		VolumeMounts: []corev1.VolumeMount{{
			Name:      holderVolume,
			MountPath: holderPath,
			ReadOnly:  true,
		}},
		SecurityContext: unprivileged(),
	}, holderSecurity(pod, redis)
}

// keepOff taints the target's node if the replacement can be scheduled to another: another fault
// may have tainted the last one meanwhile.
func (v volumeAttachDelay) keepOff(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	pod, err := v.Pod(ctx, target.Pod)
	if err != nil {
		return contract.Progress{}, err
	}
	err = node.RequireOtherNode(ctx, v.Deps, pod, nil, target.Node)
	if err != nil {
		return contract.Progress{}, err
	}
	return node.Taint(ctx, v.Deps, target.Node)
}

// Revert releases the volume first, as the replacement waits for that alone. It untaints the node
// even if that fails.
func (v volumeAttachDelay) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[heldRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	released := v.holders().release(ctx, target)
	if !v.taints() {
		return contract.Progress{}, released
	}
	progress, err := node.Untaint(ctx, v.Deps, target.Node)
	return progress, errors.Join(released, err)
}

func (v volumeAttachDelay) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	command := fmt.Sprintf("kubectl -n %s delete pod %s --grace-period=0 --force --ignore-not-found",
		v.Namespace, v.holders().name(target))
	if v.taints() {
		command += " && " + node.ManualUntaint(v.Deps, target.Node)
	}
	return command
}

// Effect is confirmed while the replacement waits on another node for the volume.
func (v volumeAttachDelay) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	ended, err := pods.Ended(ctx, v.Deps, target)
	if err != nil {
		return contract.Unseen(err)
	}
	if !ended {
		return contract.NotObserved("pod %s (%s) still runs", target.Pod, target.UID)
	}
	record, _, err := contract.Load[heldRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	pod, err := pods.Replacement(ctx, v.Deps, target, record.Controller)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence := notWaiting(pod, target)
	if effect != "" {
		return effect, evidence
	}
	return v.attachment(ctx, pod, target, record)
}

// notWaiting is the effect where no replacement waits for the volume on another node; "" where one
// does.
func notWaiting(pod *corev1.Pod, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	switch {
	case pod == nil:
		return contract.Inconclusive("pod %s (%s) is gone and has no replacement yet",
			target.Pod, target.UID)
	case pod.Spec.NodeName == target.Node:
		return contract.NotObserved(
			"the replacement %s was scheduled to node %s again, where the volume is attached", pod.Name,
			target.Node)
	case pod.Status.Phase == corev1.PodRunning:
		return contract.NotObserved(
			"the replacement %s runs on node %s: its volume was not delayed", pod.Name, pod.Spec.NodeName)
	case pod.Spec.NodeName == "":
		return contract.Inconclusive("the replacement %s is on no node%s", pod.Name,
			pods.Unscheduled(pod))
	}
	return "", ""
}

// attachment is the effect while a replacement waits: the event that the attach-detach controller
// wrote, or the attachment that it wrote it for.
func (v volumeAttachDelay) attachment(
	ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget, record heldRecord,
) (v1alpha1.Effect, string) {
	events, err := v.eventsOf(ctx, pod)
	if err != nil {
		return contract.Unseen(err)
	}
	if e := multiAttach(events); e != nil {
		return contract.Confirmed("%s of pod %s on node %s: %s", e.Reason, pod.Name,
			pod.Spec.NodeName, e.Message)
	}
	attached, err := v.isAttached(ctx, record, target.Node)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case attached:
		return contract.Confirmed(
			"volume %s is attached to node %s while pod %s waits for it on node %s", record.Volume,
			target.Node, pod.Name, pod.Spec.NodeName)
	}
	return contract.NotObserved("volume %s is not attached to node %s any more",
		record.Volume, target.Node)
}
