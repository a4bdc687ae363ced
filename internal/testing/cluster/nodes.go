package cluster

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewNode creates a schedulable node and deletes it at the end of the test.
func NewNode(t testing.TB, c client.Client, name string, labels map[string]string) {
	t.Helper()
	ctx := context.Background()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	must(t, c.Create(ctx, node))
	t.Cleanup(func() { _ = c.Delete(ctx, node) })
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("100"),
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	must(t, c.Status().Update(ctx, node))
	before := node.DeepCopy()
	node.Spec.Taints = nil // a new node is not ready
	must(t, c.Patch(ctx, node, client.MergeFrom(before)))
}

const attacher = "csi.example.com"

// Volume replaces the attach-detach controller for one volume, which can be attached to one node at a time.
type Volume struct{ Name, Claim string }

// NewVolume makes a volume, and a claim of the namespace that is bound to it.
func NewVolume(t testing.TB, c client.Client, namespace, name, claim string) *Volume {
	t.Helper()
	ctx := context.Background()
	v := &Volume{Name: name, Claim: claim}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "example",
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: attacher, VolumeHandle: name},
		},
	}}
	must(t, c.Create(ctx, volume))
	bound := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      volume.Spec.AccessModes,
			StorageClassName: new("example"),
			VolumeName:       name,
			Resources:        corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	must(t, c.Create(ctx, bound))
	bound.Status.Phase, bound.Status.Capacity, bound.Status.AccessModes = corev1.ClaimBound, size, volume.Spec.AccessModes
	must(t, c.Status().Update(ctx, bound))
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// attach brings the volume to a pod's node, unless another pod uses it elsewhere: that is the Multi-Attach error.
func (v *Volume) attach(ctx context.Context, c client.Client, pod *corev1.Pod) (bool, error) {
	var attachments storagev1.VolumeAttachmentList
	var pods corev1.PodList
	if err := c.List(ctx, &attachments); err != nil {
		return false, err
	}
	err := c.List(ctx, &pods, client.InNamespace(pod.Namespace))
	if err != nil {
		return false, err
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if *a.Spec.Source.PersistentVolumeName != v.Name {
			continue
		}
		if a.Spec.NodeName == pod.Spec.NodeName {
			return true, nil
		}
		if slices.ContainsFunc(pods.Items, func(o corev1.Pod) bool {
			return o.UID != pod.UID &&
				o.Spec.NodeName == a.Spec.NodeName && v.usedBy(&o)
		}) {
			return false, nil
		}
		if err := c.Delete(ctx, a); err != nil {
			return false, err
		}
	}
	made := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name + "-at-" + pod.Spec.NodeName},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: attacher,
			NodeName: pod.Spec.NodeName,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name},
		},
	}
	if err := c.Create(ctx, made); err != nil {
		return false, err
	}
	made.Status.Attached = true
	return true, c.Status().Update(ctx, made)
}

func (v *Volume) usedBy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(o corev1.Volume) bool {
		return o.PersistentVolumeClaim != nil && o.PersistentVolumeClaim.ClaimName == v.Claim
	})
}
