package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// provision makes the volume of a claim, once the scheduler has chosen a node if the class waits
// for that.
func (c *controller) provision(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil
	}
	claim, err := c.informers.Core().V1().PersistentVolumeClaims().Lister().
		PersistentVolumeClaims(namespace).Get(name)
	if err != nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" ||
		claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := c.informers.Storage().V1().StorageClasses().Lister().
		Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != driverName {
		return nil
	}
	waits := class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations["volume.kubernetes.io/selected-node"] == "" {
		return nil
	}
	volume := volumeFor(claim, class)
	if _, err := c.client.CoreV1().PersistentVolumes().Get(ctx, volume.Name,
		metav1.GetOptions{}); err == nil {
		return nil
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "Provisioning",
		"External provisioner is provisioning volume for claim %q", key)
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := c.disk.Create(volume.Name, class.Parameters["backend"], size.Value()); err != nil {
		c.events.Eventf(claim, corev1.EventTypeWarning, "ProvisioningFailed",
			"failed to provision volume: %v", err)
		return err
	}
	if _, err := c.client.CoreV1().PersistentVolumes().Create(ctx, volume,
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded",
		"Successfully provisioned volume %s", volume.Name)
	return nil
}

// volumeFor is the PersistentVolume that a claim of a class gets.
func volumeFor(
	claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driverName},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: name, FSType: "ext4",
				VolumeAttributes: map[string]string{
					"backend":   class.Parameters["backend"],
					"writeIOPS": class.Parameters["writeIOPS"],
				},
			}},
		},
	}
}

// reclaim deletes a volume whose claim was deleted, once it is no longer attached.
func (c *controller) reclaim(ctx context.Context, name string) error {
	volume, err := c.informers.Core().V1().PersistentVolumes().Lister().Get(name)
	if err != nil || volume.Spec.CSI == nil || volume.Spec.CSI.Driver != driverName ||
		volume.DeletionTimestamp != nil ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	for _, object := range c.informers.Storage().V1().VolumeAttachments().Informer().GetStore().
		List() {
		attachment := object.(*storagev1.VolumeAttachment)
		if source := attachment.Spec.Source.PersistentVolumeName; source != nil && *source == name {
			return fmt.Errorf("still attached to %s", attachment.Spec.NodeName)
		}
	}
	if err := c.disk.Remove(volume.Spec.CSI.VolumeHandle); err != nil {
		return err
	}
	if err := c.client.CoreV1().PersistentVolumes().Delete(ctx, name,
		metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
