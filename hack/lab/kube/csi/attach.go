package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// finalizer keeps a VolumeAttachment until the volume is detached.
const finalizer = "external-attacher/disk-lab-csi"

// Annotations of a PersistentVolume that make the pretended storage system fail, with the text
// given.
const (
	annotationFailAttach = driverName + "/fail-attach"
	annotationFailDetach = driverName + "/fail-detach"
)

// attachOrDetach carries out a VolumeAttachment.
func (c *controller) attachOrDetach(ctx context.Context, name string) error {
	// Read from the server: a stale copy would attach or detach twice.
	attachment, err := c.client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if attachment.Spec.Attacher != driverName || attachment.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	if attachment.DeletionTimestamp != nil {
		return c.detach(ctx, attachment)
	}
	return c.attach(ctx, attachment)
}

func (c *controller) attach(ctx context.Context, attachment *storagev1.VolumeAttachment) error {
	if attachment.Status.Attached {
		return nil
	}
	if !slices.Contains(attachment.Finalizers, finalizer) {
		finalizers := append(slices.Clone(attachment.Finalizers), finalizer)
		if err := c.setFinalizers(ctx, attachment, finalizers); err != nil {
			return err
		}
	}
	if message := c.ordered(ctx, attachment, annotationFailAttach); message != "" {
		return c.fail(ctx, attachment, "attachError", message)
	}
	time.Sleep(c.delays.attach)
	log.Printf("attached %s to %s", *attachment.Spec.Source.PersistentVolumeName,
		attachment.Spec.NodeName)
	return c.patch(ctx, attachment,
		map[string]any{"status": map[string]any{"attached": true, "attachError": nil}}, "status")
}

func (c *controller) detach(ctx context.Context, attachment *storagev1.VolumeAttachment) error {
	if !slices.Contains(attachment.Finalizers, finalizer) {
		return nil
	}
	if message := c.ordered(ctx, attachment, annotationFailDetach); message != "" {
		return c.fail(ctx, attachment, "detachError", message)
	}
	time.Sleep(c.delays.detach)
	log.Printf("detached %s from %s", *attachment.Spec.Source.PersistentVolumeName,
		attachment.Spec.NodeName)
	if err := c.patch(ctx, attachment, map[string]any{"status": map[string]any{"attached": false}},
		"status"); err != nil {
		return err
	}
	current, err := c.client.StorageV1().VolumeAttachments().Get(ctx, attachment.Name,
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(current.Finalizers), func(f string) bool {
		return f == finalizer
	})
	return c.setFinalizers(ctx, current, others)
}

// ordered is the text of a failure that somebody ordered by annotating the volume.
func (c *controller) ordered(
	ctx context.Context, attachment *storagev1.VolumeAttachment, annotation string,
) string {
	volume, err := c.client.CoreV1().PersistentVolumes().Get(ctx,
		*attachment.Spec.Source.PersistentVolumeName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return volume.Annotations[annotation]
}

func (c *controller) fail(
	ctx context.Context, attachment *storagev1.VolumeAttachment, field, message string,
) error {
	problem := map[string]any{"message": message, "time": metav1.Now()}
	if err := c.patch(ctx, attachment, map[string]any{"status": map[string]any{field: problem}},
		"status"); err != nil {
		return err
	}
	return fmt.Errorf("%s ordered by annotation: %s", field, message)
}

// setFinalizers fails if the object has changed since it was read: others have finalizers in the
// same list.
func (c *controller) setFinalizers(
	ctx context.Context, attachment *storagev1.VolumeAttachment, finalizers []string,
) error {
	if finalizers == nil {
		finalizers = []string{}
	}
	return c.patch(ctx, attachment, map[string]any{
		"metadata": map[string]any{
			"finalizers":      finalizers,
			"resourceVersion": attachment.ResourceVersion,
		},
	})
}

func (c *controller) patch(
	ctx context.Context, attachment *storagev1.VolumeAttachment, change map[string]any,
	subresource ...string,
) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.client.StorageV1().VolumeAttachments().Patch(ctx, attachment.Name, types.MergePatchType,
		body, metav1.PatchOptions{}, subresource...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
