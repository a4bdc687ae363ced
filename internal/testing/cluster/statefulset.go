package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// AnyNode is the node of pods that need no node object.
const AnyNode = "node-1"

// StatefulSet replaces the controller of one StatefulSet, and the scheduler and the kubelets for its pods. Set the
// fields before the first Step.
type StatefulSet struct {
	Client    client.WithWatch
	Namespace string
	Name      string
	Container string // that runs the server
	// Address is the address of a pod's server.
	Address func(pod *corev1.Pod) (ip string)
	// Start runs a pod's server and returns when it responds. stop returns when the server has ended; exited is closed
	// then. A nil exited is never closed.
	Start func(pod *corev1.Pod) (stop func(), exited <-chan struct{}, err error)
	// OutOfMemory reports whether the last server of a pod has ended as it may take no more memory; nil = none has.
	OutOfMemory func(pod *corev1.Pod) bool
	// Admit changes a pod before it is made; nil = nothing.
	Admit   func(pod *corev1.Pod)
	Nodes   []string  // for the pods; the first schedulable one is used. Empty: AnyNode for all
	Volumes []*Volume // that the pods claim

	running map[types.UID]*server
	changed bool // by this step

	Rolled []string // pods that were replaced because of another template
}

// server is the running server of a pod.
type server struct {
	stop        func()
	exited      <-chan struct{}
	restarts    int32
	outOfMemory bool // the one before had no memory left
}

// hasExited reports whether it has ended by itself.
func (s *server) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Settle makes steps until nothing is left to do.
func (s *StatefulSet) Settle(ctx context.Context) error {
	for range 1000 {
		if changed, err := s.Step(ctx); err != nil || !changed {
			return err
		}
	}
	return errors.New("the StatefulSet does not settle")
}

// Step performs one step and reports whether there was anything to do.
func (s *StatefulSet) Step(ctx context.Context) (changed bool, err error) {
	s.changed = false
	set := &appsv1.StatefulSet{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, set); err != nil {
		return false, err
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return false, err
	}
	for uid := range s.running {
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == uid }) { // deleted by force
			s.stop(uid)
		}
	}
	var problems []error
	ready := int32(0)
	for _, pod := range slices.Backward(pods) {
		if s.isOff(ctx, pod) {
			continue
		}
		runs, err := s.stepPod(ctx, set, pod)
		problems = append(problems, err)
		if runs {
			ready++
		}
	}
	problems = append(problems, s.claims(ctx, set, pods), s.scale(ctx, set, pods, ready), s.setStatus(ctx, set, int32(len(pods)), ready))
	return s.changed, errors.Join(problems...)
}

// pods are those of the StatefulSet, by ordinal.
func (s *StatefulSet) pods(ctx context.Context) ([]*corev1.Pod, error) {
	var all corev1.PodList
	err := s.Client.List(ctx, &all, client.InNamespace(s.Namespace))
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range all.Items {
		owner := metav1.GetControllerOf(&all.Items[i])
		if owner != nil && owner.Kind == "StatefulSet" &&
			owner.Name == s.Name {
			pods = append(pods, &all.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return Ordinal(a) - Ordinal(b) })
	return pods, nil
}

// stepPod is what scheduler and kubelet do for a pod.
func (s *StatefulSet) stepPod(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) (runs bool, err error) {
	switch {
	case pod.DeletionTimestamp != nil || Ordinal(pod) >= int(*set.Spec.Replicas):
		s.stop(pod.UID)
		return false, s.done(client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))))
	case pod.Spec.NodeName == "":
		node, err := s.schedulable(ctx)
		if node == "" || err != nil {
			return false, err
		}
		return false, s.done(s.Client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			Target: corev1.ObjectReference{Kind: "Node", Name: node},
		}))
	case s.running[pod.UID] == nil:
		attached, err := s.attach(ctx, pod)
		if !attached || err != nil {
			return false, err
		}
		if err := s.start(pod, 0); err != nil {
			return false, err
		}
		return true, s.done(s.setRunning(ctx, pod))
	case s.running[pod.UID].hasExited(): // the container is restarted in place
		err := s.start(pod, s.running[pod.UID].restarts+1)
		if err != nil {
			return false, err
		}
		return true, s.done(s.setRunning(ctx, pod))
	}
	inForce := containerStatus(pod, s.Container).Resources
	if inForce == nil ||
		!equality.Semantic.DeepEqual(inForce.Limits, s.container(pod).Resources.Limits) {
		return true, s.done(s.setRunning(ctx, pod)) // resized
	}
	return true, nil
}

// isOff reports whether the node of a pod has no power, as it is not ready, and ends the server in the pod then.
func (s *StatefulSet) isOff(ctx context.Context, pod *corev1.Pod) bool {
	if !slices.Contains(s.Nodes, pod.Spec.NodeName) {
		return false
	}
	node := &corev1.Node{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node)
	off := err == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
	if of := s.running[pod.UID]; off && of != nil && !of.hasExited() {
		of.stop()
		of.stop, s.changed = func() {}, true
	}
	return off
}

// claims is what two controllers do for the claims of spec.volumeClaimTemplates: one that is deleted goes once no pod on
// a node uses it, and is made again.
func (s *StatefulSet) claims(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) error {
	for _, template := range set.Spec.VolumeClaimTemplates {
		for _, pod := range pods {
			claim := &corev1.PersistentVolumeClaim{}
			name := template.Name + "-" + pod.Name
			err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, claim)
			switch {
			case apierrors.IsNotFound(err):
				claim.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
				claim.Spec = *template.Spec.DeepCopy()
				if err := s.bind(ctx, claim); err != nil {
					return err
				}
			case err != nil:
				return err
			case claim.DeletionTimestamp != nil && s.running[pod.UID] == nil:
				claim.Finalizers = nil
				if err := s.done(client.IgnoreNotFound(s.Client.Update(ctx, claim))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// attach brings the volumes of a pod to its node, as far as that is possible.
func (s *StatefulSet) attach(ctx context.Context, pod *corev1.Pod) (all bool, err error) {
	all = true
	for _, v := range s.Volumes {
		if v.usedBy(pod) && all && err == nil {
			all, err = v.attach(ctx, s.Client, pod)
		}
	}
	return all, err
}

func (s *StatefulSet) start(pod *corev1.Pod, restarts int32) error {
	killed := s.OutOfMemory != nil && s.OutOfMemory(pod)
	stop, exited, err := s.Start(pod)
	if err != nil {
		return fmt.Errorf("start the server of pod %s: %w", pod.Name, err)
	}
	if s.running == nil {
		s.running = map[types.UID]*server{}
	}
	s.running[pod.UID] = &server{stop: stop, exited: exited, restarts: restarts, outOfMemory: killed}
	return nil
}

// StopAll ends all servers.
func (s *StatefulSet) StopAll() {
	for uid := range s.running {
		s.stop(uid)
	}
}

// stop ends a pod's server, if it has one.
func (s *StatefulSet) stop(uid types.UID) {
	server := s.running[uid]
	if server == nil {
		return
	}
	delete(s.running, uid)
	server.stop()
	s.changed = true
}

// scale makes the pods that are missing, one by one, and replaces those of an old template one by one unless something
// else is to do that.
func (s *StatefulSet) scale(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod, ready int32) error {
	revision := Revision(set)
	for ordinal := range int(*set.Spec.Replicas) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return Ordinal(p) == ordinal }) {
			continue
		}
		return s.done(s.Client.Create(ctx, s.newPod(set, ordinal, revision)))
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || ready < *set.Spec.Replicas {
		return nil
	}
	for _, pod := range slices.Backward(pods) {
		if pod.DeletionTimestamp == nil && pod.Labels[appsv1.StatefulSetRevisionLabel] != revision {
			s.Rolled = append(s.Rolled, pod.Name)
			return s.done(s.Client.Delete(ctx, pod))
		}
	}
	return nil
}

// bind creates a claim, which gets the volume that there is for it.
func (s *StatefulSet) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	i := slices.IndexFunc(s.Volumes, func(v *Volume) bool { return v.Claim == claim.Name })
	if i >= 0 {
		claim.Spec.VolumeName, claim.Spec.StorageClassName = s.Volumes[i].Name, new("example")
	}
	if err := s.done(s.Client.Create(ctx, claim)); err != nil || i < 0 {
		return err
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
	}
	return s.done(s.Client.Status().Update(ctx, claim))
}

// Ordinal is a pod's number in its StatefulSet.
func Ordinal(pod *corev1.Pod) int {
	return OrdinalOf(pod.Name)
}

// OrdinalOf is that of the pod with a name.
func OrdinalOf(name string) int {
	n, _ := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	return n
}

func (s *StatefulSet) newPod(set *appsv1.StatefulSet, ordinal int, revision string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = s.Namespace, fmt.Sprintf("%s-%d", s.Name, ordinal)
	pod.UID = uuid.NewUUID() // an API server sets another one, a fake client none
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	if len(s.Nodes) == 0 {
		pod.Spec.NodeName = AnyNode
	}
	if s.Admit != nil {
		s.Admit(pod)
	}
	return pod
}

// setStatus writes the StatefulSet's status if it has changed.
func (s *StatefulSet) setStatus(ctx context.Context, set *appsv1.StatefulSet, pods, ready int32) error {
	before := set.Status.DeepCopy()
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation,
		Replicas:           pods,
		ReadyReplicas:      ready,
		AvailableReplicas:  ready,
		CurrentReplicas:    pods,
		UpdatedReplicas:    pods,
		CurrentRevision:    Revision(set),
		UpdateRevision:     Revision(set),
	}
	if equality.Semantic.DeepEqual(before, &set.Status) {
		return nil
	}
	return s.done(s.Client.Status().Update(ctx, set))
}

// done notes that something was changed.
func (s *StatefulSet) done(err error) error {
	s.changed = true
	return err
}

// Revision is the name of a StatefulSet's template.
func Revision(set *appsv1.StatefulSet) string {
	text, _ := json.Marshal(set.Spec.Template)
	return fmt.Sprintf("%s-%.4x", set.Name, sha256.Sum256(text))
}

// schedulable is the first schedulable node; "" if there is none.
func (s *StatefulSet) schedulable(ctx context.Context) (string, error) {
	for _, name := range s.Nodes {
		node := &corev1.Node{}
		err := s.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		if err != nil {
			return "", err
		}
		// no kubelet removes the API server's node.kubernetes.io/not-ready
		held := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFault })
		if !node.Spec.Unschedulable && !held {
			return name, nil
		}
	}
	return "", nil
}

func (s *StatefulSet) setRunning(ctx context.Context, pod *corev1.Pod) error {
	ip, now := s.Address(pod), metav1.Now()
	resources := s.container(pod).Resources
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now, QOSClass: pod.Status.QOSClass,
		HostIP: "127.0.0.1", HostIPs: []corev1.HostIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:               s.Container,
			Ready:              true,
			Started:            new(true),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			Resources:          resources.DeepCopy(),
			AllocatedResources: resources.Requests,
			RestartCount:       s.running[pod.UID].restarts,
		}},
	}
	status := &pod.Status.ContainerStatuses[0]
	if status.RestartCount > 0 {
		last := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now}
		if s.running[pod.UID].outOfMemory {
			last.Reason, last.ExitCode = "OOMKilled", 137
		}
		status.LastTerminationState.Terminated = last
	}
	return s.Client.Status().Update(ctx, pod)
}

// container is the container of a pod that runs the server.
func (s *StatefulSet) container(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Container })
	return &pod.Spec.Containers[i]
}

func containerStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// RunHelpers replaces the kubelets for the pods that faults created in a namespace; they run nothing.
func RunHelpers(ctx context.Context, c client.Client, namespace string) error {
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelFault})
	if err != nil {
		return err
	}
	var problems []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil:
			problems = append(problems, c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
		case pod.Status.Phase == corev1.PodPending:
			now := metav1.Now()
			pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{
					Name:  pod.Spec.Containers[0].Name,
					Ready: true,
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
				},
			}
			problems = append(problems, c.Status().Update(ctx, pod))
		}
	}
	return errors.Join(problems...)
}
