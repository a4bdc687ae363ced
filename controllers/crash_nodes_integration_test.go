//go:build integration

package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// makeNodes makes two nodes that take pods, and removes them with the test.
func makeNodes(p *place) []string {
	p.t.Helper()
	names := []string{p.namespace + "-a", p.namespace + "-b"}
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{placeLabel: p.namespace}}}
		p.mustChange(p.client.Create(context.Background(), node))
		p.t.Cleanup(func() { _ = p.client.Delete(context.Background(), node) })
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100")}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		p.mustChange(p.client.Status().Update(context.Background(), node))
		before := node.DeepCopy()
		node.Spec.Taints = nil // a new node is not ready
		p.mustChange(p.client.Patch(context.Background(), node, client.MergeFrom(before)))
	}
	return names
}

// volumes stands in for the attach-detach controller: it has one volume, which one node at a time may have.
type volumes struct{ volume, claim string }

func makeVolume(p *place) *volumes {
	p.t.Helper()
	v := &volumes{volume: p.namespace, claim: "data"}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.volume}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "crash",
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "crash.example.com", VolumeHandle: v.volume}},
	}}
	p.mustChange(p.client.Create(context.Background(), volume))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: v.claim}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, StorageClassName: new("crash"), VolumeName: v.volume, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	p.create(claim)
	claim.Status.Phase = corev1.ClaimBound
	p.mustChange(p.client.Status().Update(context.Background(), claim))
	return v
}

// attach brings the volume to a pod's node, unless another pod uses it elsewhere: that is the Multi-Attach error.
func (v *volumes) attach(ctx context.Context, p *place, pod *corev1.Pod) (bool, error) {
	if v == nil {
		return true, nil
	}
	var attachments storagev1.VolumeAttachmentList
	var pods corev1.PodList
	if err := p.client.List(ctx, &attachments); err != nil {
		return false, err
	}
	if err := p.client.List(ctx, &pods, client.InNamespace(p.namespace)); err != nil {
		return false, err
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if *a.Spec.Source.PersistentVolumeName != v.volume {
			continue
		}
		if a.Spec.NodeName == pod.Spec.NodeName {
			return true, nil
		}
		if slices.ContainsFunc(pods.Items, func(o corev1.Pod) bool { return o.UID != pod.UID && o.Spec.NodeName == a.Spec.NodeName && v.usedBy(&o) }) {
			return false, nil
		}
		if err := p.client.Delete(ctx, a); err != nil {
			return false, err
		}
	}
	made := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "crash.example.com", NodeName: pod.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.volume},
	}}
	if err := p.client.Create(ctx, made); err != nil {
		return false, err
	}
	made.Status.Attached = true
	return true, p.client.Status().Update(ctx, made)
}

func (v *volumes) usedBy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(o corev1.Volume) bool {
		return o.PersistentVolumeClaim != nil && o.PersistentVolumeClaim.ClaimName == v.claim
	})
}
