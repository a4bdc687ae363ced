package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// heldVolume is a volume that can be held on its node.
type heldVolume struct {
	claim      string
	volume     *corev1.PersistentVolume
	attachment string // name of its VolumeAttachment
}

// heldVolume finds a claim of a pod whose volume can be attached to only one node at a time, that
// of the named container first. A Problem names the reason for each claim that is not.
func (v volumeAttachDelay) heldVolume(
	ctx context.Context, pod *corev1.Pod, container string,
) (heldVolume, error) {
	claims := claimsOf(pod, container)
	if len(claims) == 0 {
		return heldVolume{}, problem.Unsupported(
			"pod %s has no volume of a persistentVolumeClaim: there is nothing to hold", pod.Name)
	}
	var reasons []string
	passes := false
	for _, claim := range claims {
		held, why, err := v.attachable(ctx, claim, pod.Spec.NodeName)
		if err != nil {
			return heldVolume{}, err
		}
		if why == "" {
			return held, nil
		}
		reasons = append(reasons, fmt.Sprintf("claim %s %s", claim, why))
		passes = passes || why == pending
	}
	const message = "pod %s has no volume that could be held on its node: %s"
	if passes {
		return heldVolume{}, problem.NotYet(message, pod.Name, strings.Join(reasons, "; "))
	}
	return heldVolume{}, problem.Unsupported(message, pod.Name, strings.Join(reasons, "; "))
}

// pending is why the volume of a claim cannot be held that is to be bound.
const pending = "is " + string(corev1.ClaimPending)

// claimsOf is the claims that a pod mounts as file systems, those of the named container first.
func claimsOf(pod *corev1.Pod, container string) []string {
	var own, others []string
	for _, c := range pod.Spec.Containers {
		for _, mount := range c.VolumeMounts {
			i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.Name == mount.Name && v.PersistentVolumeClaim != nil
			})
			switch {
			case i < 0:
			case c.Name == container:
				own = append(own, pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
			default:
				others = append(others, pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
			}
		}
	}
	var once []string
	for _, claim := range slices.Concat(own, others) {
		if !slices.Contains(once, claim) {
			once = append(once, claim)
		}
	}
	return once
}

// attachable returns a claim's volume, and why it cannot be held on a node; why is "" where it can.
func (v volumeAttachDelay) attachable(
	ctx context.Context, name, node string,
) (held heldVolume, why string, err error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := v.Live.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: name},
		claim); apierrors.IsNotFound(err) {
		return held, "does not exist", nil
	} else if err != nil {
		return held, "", err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return held, fmt.Sprintf("is %s", claim.Status.Phase), nil
	}
	volume := &corev1.PersistentVolume{}
	if err := v.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName},
		volume); apierrors.IsNotFound(err) {
		return held, fmt.Sprintf("names volume %s, which does not exist", claim.Spec.VolumeName), nil
	} else if err != nil {
		return held, "", err
	}
	for _, mode := range volume.Spec.AccessModes {
		switch mode {
		case corev1.ReadWriteMany, corev1.ReadOnlyMany:
			return held, fmt.Sprintf(
				"is %s: its volume can be attached to several nodes at once, so the replacement would not wait",
				mode), nil
		case corev1.ReadWriteOncePod:
			return held, fmt.Sprintf("is %s: no holder pod may use it beside Redis", mode), nil
		}
	}
	attachment, err := v.attachmentOf(ctx, volume.Name, node)
	if err != nil {
		return held, "", err
	}
	if attachment == "" {
		return held, fmt.Sprintf(
			"has volume %s, for which there is no VolumeAttachment to node %s: its storage class %q "+
				"attaches nothing to nodes (a local or a network file system)",
			volume.Name, node, volume.Spec.StorageClassName), nil
	}
	return heldVolume{
		claim:      name,
		volume:     volume,
		attachment: attachment,
	}, "", nil
}

// attachmentOf is the name of the VolumeAttachment by which a volume is attached to a node; ""
// where it is not.
func (v volumeAttachDelay) attachmentOf(
	ctx context.Context, volume, node string,
) (name string, err error) {
	var page storagev1.VolumeAttachmentList
	err = paging.Each(ctx, v.Live, &page, func() bool {
		i := slices.IndexFunc(page.Items, func(a storagev1.VolumeAttachment) bool {
			return attaches(&a,
				volume, node)
		})
		if i >= 0 {
			name = page.Items[i].Name
		}
		page.Items = nil // the next page must not be decoded over these
		return i < 0
	})
	return name, err
}

func attaches(a *storagev1.VolumeAttachment, volume, node string) bool {
	return a.Spec.NodeName == node && a.Spec.Source.PersistentVolumeName != nil &&
		*a.Spec.Source.PersistentVolumeName == volume && a.Status.Attached
}

// isAttached reports whether a recorded volume is still attached to a node. The cluster's
// VolumeAttachments are listed only where none is recorded.
func (v volumeAttachDelay) isAttached(
	ctx context.Context, record heldRecord, node string,
) (bool, error) {
	if record.Attachment == "" {
		name, err := v.attachmentOf(ctx, record.Volume, node)
		return name != "", err
	}
	a := &storagev1.VolumeAttachment{}
	err := v.Live.Get(ctx, client.ObjectKey{Name: record.Attachment}, a)
	return err == nil && attaches(a, record.Volume, node), client.IgnoreNotFound(err)
}

// The reasons of Kubernetes' events about a volume that moves to another node.
const (
	reasonFailedAttach    = "FailedAttachVolume"
	reasonSucceededAttach = "SuccessfulAttachVolume"
)

// Follow reports the events of the attach-detach controller about the replacement.
func (v volumeAttachDelay) Follow(
	ctx context.Context, target *v1alpha1.FaultTarget,
) []contract.Sighting {
	record, _, err := contract.Load[heldRecord](target)
	if err != nil {
		return nil
	}
	pod, err := pods.Replacement(ctx, v.Deps, target, record.Controller)
	if err != nil || pod == nil {
		return nil
	}
	events, err := v.eventsOf(ctx, pod)
	if err != nil {
		return nil
	}
	var seen []contract.Sighting
	if e := multiAttach(events); e != nil {
		seen = append(seen, contract.Sighting{
			At:      e.FirstTimestamp.Time,
			Coarse:  true,
			Event:   contract.EventMultiAttach,
			Object:  pod.Name,
			Message: e.Message,
		})
	}
	for i := range events {
		e := &events[i]
		if e.Reason == reasonSucceededAttach && strings.Contains(e.Message, record.Volume) {
			seen = append(seen, contract.Sighting{
				At:      e.FirstTimestamp.Time,
				Coarse:  true,
				Event:   contract.EventAttached,
				Object:  pod.Name,
				Message: e.Message,
			})
		}
	}
	return seen
}

// multiAttach is the event that the volume is still attached to another node; nil where there is
// none. Since Kubernetes 1.37 it is worded as waiting, not as an error.
func multiAttach(events []corev1.Event) *corev1.Event {
	i := slices.IndexFunc(events, func(e corev1.Event) bool {
		return e.Reason == reasonFailedAttach &&
			(strings.HasPrefix(e.Message, "Multi-Attach error for volume") ||
				strings.HasPrefix(e.Message, "Waiting for detach for volume"))
	})
	if i < 0 {
		return nil
	}
	return &events[i]
}

// eventsOf are the events of a pod, by its UID.
func (v volumeAttachDelay) eventsOf(ctx context.Context, pod *corev1.Pod) ([]corev1.Event, error) {
	var all []corev1.Event
	var page corev1.EventList
	err := paging.Each(ctx, v.Live, &page, func() bool {
		all = append(all, page.Items...)
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(pod.Namespace), client.MatchingFields{"involvedObject.uid": string(pod.UID)})
	return all, err
}

func (v volumeAttachDelay) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record heldRecord) contract.Description {
		taint, untaint, stays := "", "", ""
		if v.taints() {
			taint = ", taint that node"
			untaint = ", and untaint node " + target.Node
			stays = "; the node stays tainted"
		}
		return contract.Description{
			Action: fmt.Sprintf(
				"hold volume %s (claim %s) on node %s by pod %s%s, then delete pod %s without grace period",
				record.Volume, record.Claim, target.Node, v.holders().name(target), taint, target.Pod),
			Revert: fmt.Sprintf("delete pod %s%s", v.holders().name(target), untaint),
			SelfEnding: fmt.Sprintf("the holder pod ends after %s, which releases the volume%s",
				v.lasts+holderMargin, stays),
		}
	})
}
