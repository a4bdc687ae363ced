package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/diskfilltest"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/netfaulttest"
	"github.com/redquake/redquake/internal/testing/powertest"
)

const shop = "shop"

// stage is a StatefulSet of a primary and a replica on two nodes, the servers in its pods, and a simulation of the rest
// of the cluster.
type stage struct {
	t       *testing.T
	servers *memory
	cluster client.WithWatch // as the operator sees it
	under   client.WithWatch // without the interceptor of the test
	network *netfaulttest.Pods
	power   *powertest.Grid
	made    int
	breaks  []string // pods of Redis that were deleted, by UID
	refuse  error    // of every write
}

func newContractStage(t *testing.T) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme,
		autoscalingv2.AddToScheme, policyv1.AddToScheme, object.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{t: t, servers: newMemory(t)}
	s.under = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Pod{}, &appsv1.StatefulSet{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{
				string(o.(*corev1.Event).InvolvedObject.UID),
			}
		}).Build()
	s.network = netfaulttest.NewPods(s.under)
	s.network.Other = diskfilltest.New(s.under)
	s.power = &powertest.Grid{Client: s.under}
	s.cluster = interceptor.NewClient(s.under, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption,
		) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.List(ctx, into, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := errors.Join(ctx.Err(), s.refuse); err != nil {
				return err
			}
			s.made++
			object.SetUID(types.UID(fmt.Sprintf("made-%d", s.made)))
			object.SetCreationTimestamp(metav1.Now())
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			if err := errors.Join(ctx.Err(), s.refuse); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: s.delete,
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, object, sub client.Object,
			_ ...client.SubResourceCreateOption,
		) error { // an eviction
			return s.delete(ctx, s.under, object,
				&client.DeleteOptions{Preconditions: sub.(*policyv1.Eviction).DeleteOptions.Preconditions})
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object,
			options ...client.SubResourceUpdateOption,
		) error { // of the scale of a Deployment
			if err := errors.Join(ctx.Err(), s.refuse); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, object, options...)
		},
		SubResourcePatch: s.change,
	})
	s.createObjects()
	return s
}

// delete checks the precondition of a UID, which the fake client ignores.
func (s *stage) delete(
	ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption,
) error {
	if err := errors.Join(ctx.Err(), s.refuse); err != nil {
		return err
	}
	var given client.DeleteOptions
	given.ApplyOptions(options)
	current := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return err
	}
	if given.Preconditions != nil && given.Preconditions.UID != nil && *given.Preconditions.UID != current.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, object.GetName(), fmt.Errorf("another UID"))
	}
	if current.GetLabels()["app"] == "redis" {
		s.breaks = append(s.breaks, string(current.GetUID()))
		s.servers.Remove(addressOfPod(current.(*corev1.Pod)))
	}
	return c.Delete(ctx, object)
}

// change changes a pod by a subresource, which its kubelet applies: a resize at once.
func (s *stage) change(
	ctx context.Context, c client.Client, subResource string, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption,
) error {
	var given client.SubResourcePatchOptions
	given.ApplyOptions(options)
	if err := errors.Join(ctx.Err(), s.refuse); err != nil || len(given.DryRun) > 0 {
		return err
	}
	if subResource == "ephemeralcontainers" {
		return s.network.Add(ctx, object, patch, false)
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var wanted struct{ Spec corev1.PodSpec }
	if err := json.Unmarshal(data, &wanted); err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), pod); err != nil {
		return err
	}
	for name, q := range wanted.Spec.Containers[0].Resources.Limits {
		pod.Spec.Containers[0].Resources.Limits[name] = q
	}
	for name, q := range wanted.Spec.Containers[0].Resources.Requests {
		pod.Spec.Containers[0].Resources.Requests[name] = q
	}
	if err := c.Update(ctx, pod); err != nil {
		return err
	}
	pod.Status.ContainerStatuses[0].Resources = &pod.Spec.Containers[0].Resources
	return c.Status().Update(ctx, pod)
}

func addressOfPod(pod *corev1.Pod) string { return pod.Status.PodIP + ":6379" }

func (s *stage) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.under.Create(context.Background(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) createObjects() {
	s.t.Helper()
	for _, name := range []string{"node-1", "node-2"} {
		labels := map[string]string{corev1.LabelTopologyZone: "zone-of-" + name}
		s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
	}
	s.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "operator", UID: "deployment"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
	})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "redis", UID: "set", Generation: 1}}
	set.Spec.Replicas = new(int32(2))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}
	set.Spec.Template.Labels = map[string]string{"app": "redis"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "redis", Command: []string{"redis-server"}}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2, UpdateRevision: "one"}
	s.create(set,
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
			Spec:       corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		},
		&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "attachment"},
			Status:     storagev1.VolumeAttachmentStatus{Attached: true},
			Spec: storagev1.VolumeAttachmentSpec{
				NodeName: "node-1",
				Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-1")},
			},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: shop,
				Name:      "run-0",
				Labels:    map[string]string{v1alpha1.LabelLoadTest: "run"},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.50"},
		})
	s.settle()
}

// settle simulates the rest of the cluster: controllers, scheduler, kubelets, Chaos Mesh, and the end of a hang.
func (s *stage) settle() {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	s.must(s.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "redis"}, set))
	set.Status.UpdateRevision = cluster.Revision(set)
	for i := range 8 {
		pod := &corev1.Pod{}
		err := s.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: fmt.Sprintf("redis-%d", i)}, pod)
		switch wanted := int32(i) < *set.Spec.Replicas; {
		case wanted && apierrors.IsNotFound(err):
			s.place(i, set)
		case !wanted && err == nil:
			s.servers.Remove(addressOfPod(pod))
			s.must(s.under.Delete(context.Background(), pod))
		case err == nil:
			s.restart(pod)
			if netfaulttest.Start(pod) {
				s.must(s.under.Status().Update(context.Background(), pod))
			}
		}
	}
	set.Status.Replicas, set.Status.ReadyReplicas = *set.Spec.Replicas, *set.Spec.Replicas
	s.must(s.under.Status().Update(context.Background(), set))
	var pods corev1.PodList
	s.must(s.under.List(context.Background(), &pods, client.MatchingLabels{v1alpha1.LabelComponent: "volume-holder"}))
	for i := range pods.Items {
		pods.Items[i].Status.Phase = corev1.PodRunning
		s.must(s.under.Status().Update(context.Background(), &pods.Items[i]))
	}
	for _, child := range s.children() {
		meshtest.SetStatus(s.t, child, "shop/redis-0", meshtest.Injected)
		s.must(s.under.Update(context.Background(), child))
	}
	s.must(s.power.Beat(context.Background()))
	for _, server := range s.servers.All() {
		for server.Busy() {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// claim is that of a pod, made by the StatefulSet as long as there is none.
func (s *stage) claim(pod string) string {
	s.t.Helper()
	s.made++
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "data-" + pod, UID: types.UID(fmt.Sprintf("claim-%d", s.made))},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase:    corev1.ClaimBound,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	claim.Spec.VolumeName = "pv-1"
	s.must(client.IgnoreAlreadyExists(s.under.Create(context.Background(), claim)))
	return claim.Name
}

// place makes a pod of the StatefulSet on the first schedulable node, and the server in it.
func (s *stage) place(i int, set *appsv1.StatefulSet) {
	s.t.Helper()
	s.made++
	node := ""
	var nodes corev1.NodeList
	s.must(s.under.List(context.Background(), &nodes))
	for _, n := range nodes.Items {
		if !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 && node == "" {
			node = n.Name
		}
	}
	limits := func() corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		}
	}
	resources := corev1.ResourceRequirements{Limits: limits(), Requests: limits()}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         shop,
			Name:              fmt.Sprintf("redis-%d", i),
			UID:               types.UID(fmt.Sprintf("pod-%d", s.made)),
			CreationTimestamp: metav1.Now(),
			Labels:            map[string]string{"app": "redis", appsv1.StatefulSetRevisionLabel: set.Status.UpdateRevision},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "set", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{
				{
					Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}}, Resources: resources,
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				},
			},
			Volumes: []corev1.Volume{
				{
					Name: "data",
					VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
							ClaimName: s.claim(fmt.Sprintf("redis-%d", i)),
						},
					},
				},
			},
		},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			PodIP:             fmt.Sprintf("10.0.0.%d", i+1),
			HostIPs:           []corev1.HostIP{{IP: "10.0.1.1"}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", Ready: true, Resources: &resources}},
		},
	}
	s.create(pod)
	// io-threads can be changed while it runs
	state := memredis.State{RunID: fmt.Sprintf("run-%d", s.made), Name: "valkey", Version: "9.0.1", Appends: true}
	for at, other := range s.servers.All() {
		if other.State().Primary == "" && at != addressOfPod(pod) {
			state.Primary = at
		}
	}
	s.servers.start(addressOfPod(pod), state)
}

// restart restarts a process that ended, as the kubelet does.
func (s *stage) restart(pod *corev1.Pod) {
	s.t.Helper()
	r := s.servers.At(addressOfPod(pod))
	if r == nil || r.Running() {
		return
	}
	s.made++
	r.Change(func(is *memredis.State) { is.RunID = fmt.Sprintf("run-%d", s.made) })
	r.Restart()
	pod.Status.ContainerStatuses[0].RestartCount++
	s.must(s.under.Status().Update(context.Background(), pod))
}

// children returns the objects of Chaos Mesh.
func (s *stage) children() []object.Object {
	s.t.Helper()
	found := map[schema.GroupVersionKind][]object.Object{}
	for _, fault := range object.Types() {
		kind, _ := object.Kind(fault)
		children, err := meshtest.Children(context.Background(), s.under, kind, shop)
		s.must(err)
		found[kind] = children
	}
	return slices.Concat(slices.Collect(maps.Values(found))...)
}

// shows returns all state that a fault can change, except for the identity of pods and processes.
func (s *stage) shows() string {
	s.t.Helper()
	var lines []string
	var nodes corev1.NodeList
	var pods corev1.PodList
	set := &appsv1.StatefulSet{}
	s.must(s.under.List(context.Background(), &nodes))
	s.must(s.under.List(context.Background(), &pods))
	s.must(s.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "redis"}, set))
	lines = append(lines, fmt.Sprintf("the operator has %d replicas", *s.operator().Spec.Replicas))
	for _, n := range nodes.Items {
		lines = append(lines, fmt.Sprintf("%s unschedulable %t, taints %v, annotations %v, ready %s", n.Name,
			n.Spec.Unschedulable, n.Spec.Taints, n.Annotations, n.Status.Conditions[0].Status))
	}
	for _, p := range pods.Items {
		text := p.Name
		for _, c := range p.Spec.Containers {
			text += fmt.Sprintf(" cpu %s", c.Resources.Limits.Cpu())
		}
		lines = append(lines, text)
	}
	lines = append(lines, fmt.Sprintf("%d replicas, template %s, strategy %s, annotations %v", *set.Spec.Replicas,
		cluster.Revision(set), set.Spec.UpdateStrategy.Type, set.Annotations))
	synctest.Wait()
	for at, r := range s.servers.All() {
		lines = append(lines, fmt.Sprintf("%s primary %q, config %v, paused %q", at, r.State().Primary, r.Settings(),
			r.Paused()))
	}
	for _, child := range s.children() {
		lines = append(lines, fmt.Sprintf("%T", child)+" "+child.GetName())
	}
	lines = append(lines, s.network.InForce(shop)...)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// operator is the Deployment that looks after the StatefulSet.
func (s *stage) operator() *appsv1.Deployment {
	s.t.Helper()
	deployment := &appsv1.Deployment{}
	s.must(s.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "operator"}, deployment))
	return deployment
}

// broken returns the changes so far that cannot be reverted.
func (s *stage) broken() string { return strings.Join(append(s.breaks, s.servers.broken()...), ", ") }

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) deps() contract.Deps {
	return contract.Deps{
		Redis: target.Redis{
			Namespace: shop, Live: apitest.Paged(s.cluster), Servers: s.servers.client,
			Spec: &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}},
		},
		Cluster: s.cluster, LoadTest: "run",
		Operator: contract.Operator{Programs: s.network, Image: "redquake:dev", Power: s.power},
		Owner: metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       "RedisFault",
			Name:       "break",
			UID:        "fault-uid",
			Controller: new(true),
		},
	}
}

func microTime(at time.Time) *metav1.MicroTime { return new(metav1.NewMicroTime(at)) }
