package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

// Kubelet replaces Job controller, kubelet and garbage collector of one namespace: it creates the indexed pods of Jobs,
// runs the real agent in this process on each pod's address, and deletes objects without an owner.
type Kubelet struct {
	Place
	LookEvery  time.Duration // without any change that a watch shows
	SweepEvery time.Duration // for garbage, at most
	Node       string        // of the pods; "" = that of the pods of Redis
	// host:port of a Service to that of a server: the cluster's DNS
	Hosts   map[string]string
	Refuse  func(index int) bool                                 // pods that are not to become ready; nil = none
	Listen  func(address string) (net.Listener, error)           // the listener of an agent
	Address func() string                                        // of the next pod
	Load    func(plan *plan.Plan, pod int) (agent.Runner, error) // what an agent runs

	made   map[types.UID]int // pods made of a Job
	agents map[types.UID]*agentPod
	swept  time.Time // time of the last garbage collection
	ended  chan struct{}
}

// agentPod is one running load pod.
type agentPod struct {
	cancel  context.CancelFunc
	silence func() // cuts the listener: the pod exists and does not respond
	done    chan struct{}
	err     error
}

// Start runs it until the test ends.
func (k *Kubelet) Start() {
	k.T.TempDir() // holds the pods' mounts: it must be removed after they have ended, and cleanups run in reverse order
	k.made, k.agents = map[types.UID]int{}, map[types.UID]*agentPod{}
	k.ended = make(chan struct{}, 1)
	stop := k.StandIn("kubelet", k.LookEvery, k.ended, k.sync, &corev1.PodList{}, &batchv1.JobList{},
		&v1alpha1.RedisLoadTestList{}, &v1alpha1.RedisFaultList{})
	k.T.Cleanup(func() {
		stop()
		for _, a := range k.agents {
			a.cancel()
			a.silence()
			<-a.done
		}
	})
}

func (k *Kubelet) sync(ctx context.Context) error {
	var jobs batchv1.JobList
	var pods corev1.PodList
	err := k.Client.List(ctx, &pods, client.InNamespace(k.Namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	})
	if err != nil {
		return err
	}
	err = k.Client.List(ctx, &jobs, client.InNamespace(k.Namespace))
	if err != nil {
		return err
	}
	if now := time.Now(); now.Sub(k.swept) >= k.SweepEvery {
		k.swept = now
		if err := k.collectGarbage(ctx, &jobs); err != nil {
			return err
		}
	}
	live := map[types.UID]bool{}
	for i := range jobs.Items {
		live[jobs.Items[i].UID] = true
		if err := k.makePods(ctx, &jobs.Items[i]); err != nil {
			return err
		}
	}
	there := map[types.UID]bool{}
	var problems []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		there[pod.UID] = true
		owner := metav1.GetControllerOf(pod)
		if owner != nil && owner.Kind == "Job" && !live[owner.UID] && pod.DeletionTimestamp == nil {
			problems = append(problems, k.Client.Delete(ctx, pod))
			continue
		}
		problems = append(problems, k.syncPod(ctx, pod))
	}
	for uid, a := range k.agents {
		if !there[uid] { // deleted by force
			a.silence()
			a.cancel()
		}
	}
	return errors.Join(problems...)
}

// collectGarbage deletes objects whose schedule, experiment, load test or fault was deleted.
func (k *Kubelet) collectGarbage(ctx context.Context, jobs *batchv1.JobList) error {
	owners := map[types.UID]bool{}
	var tests v1alpha1.RedisLoadTestList
	var faults v1alpha1.RedisFaultList
	var experiments v1alpha1.RedisExperimentList
	var schedules v1alpha1.RedisExperimentScheduleList
	var maps corev1.ConfigMapList
	var secrets corev1.SecretList
	// Owned objects are listed before their owners, so that one created between the lists is not considered an orphan.
	for _, list := range []client.ObjectList{&maps, &secrets, &tests, &faults, &experiments, &schedules} {
		err := k.Client.List(ctx, list, client.InNamespace(k.Namespace))
		if err != nil {
			return err
		}
	}
	owned := []client.Object{}
	for i := range tests.Items {
		owners[tests.Items[i].UID] = true
		owned = append(owned, &tests.Items[i])
	}
	for i := range faults.Items {
		owners[faults.Items[i].UID] = true
		owned = append(owned, &faults.Items[i])
	}
	for i := range experiments.Items {
		owners[experiments.Items[i].UID] = true
		owned = append(owned, &experiments.Items[i])
	}
	for i := range schedules.Items {
		owners[schedules.Items[i].UID] = true
	}
	for i := range jobs.Items {
		owned = append(owned, &jobs.Items[i])
	}
	for i := range maps.Items {
		owned = append(owned, &maps.Items[i])
	}
	for i := range secrets.Items {
		owned = append(owned, &secrets.Items[i])
	}
	for _, o := range owned {
		owner := metav1.GetControllerOf(o)
		if owner != nil && !owners[owner.UID] {
			err := client.IgnoreNotFound(k.Client.Delete(ctx, o,
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Kubelet) makePods(ctx context.Context, job *batchv1.Job) error {
	for job.DeletionTimestamp == nil && !ptr.Deref(job.Spec.Suspend, false) &&
		k.made[job.UID] < int(*job.Spec.Completions) {
		index := k.made[job.UID]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       job.Namespace,
				Name:            fmt.Sprintf("%s-%d-%s", job.Name, index, string(job.UID)[:8]),
				Labels:          job.Spec.Template.Labels,
				Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: *job.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.NodeName = cmp.Or(k.Node, "node-1")
		err := k.Client.Create(ctx, pod)
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		k.made[job.UID]++
	}
	return nil
}

func (k *Kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	a := k.agents[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		if a != nil {
			a.cancel()
			a.silence()
			<-a.done
		}
		return client.IgnoreNotFound(k.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case a == nil:
		index, _ := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
		if k.Refuse != nil && k.Refuse(index) {
			return nil
		}
		return k.run(ctx, pod, index)
	case pod.Status.Phase != corev1.PodRunning:
		return nil
	}
	select {
	case <-a.done:
		return k.setEnded(ctx, pod, a.err)
	default:
		return nil
	}
}

// run starts the agent of a pod on a new address. While something that it mounts is missing the pod waits.
func (k *Kubelet) run(ctx context.Context, pod *corev1.Pod, index int) error {
	dir, err := k.mount(ctx, pod)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	config, err := k.agentConfig(dir, index)
	if err != nil {
		return err
	}
	ip := k.Address()
	listener, err := k.Listen(net.JoinHostPort(ip, strconv.Itoa(agent.Port)))
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	cuttable := &cuttableListener{Listener: listener}
	config.Listener = cuttable
	a := &agentPod{
		cancel:  cancel,
		silence: cuttable.cut,
		done:    make(chan struct{}),
	}
	k.agents[pod.UID] = a
	go func() {
		a.err = agent.Serve(running, config)
		close(a.done)
		wake(k.ended)
	}()
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:  pod.Spec.Containers[0].Name,
			Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	return k.Client.Status().Update(ctx, pod)
}

// mount writes a pod's volumes below a directory.
func (k *Kubelet) mount(ctx context.Context, pod *corev1.Pod) (string, error) {
	root := k.T.TempDir()
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name != m.Name {
				continue
			}
			files := map[string][]byte{}
			var items []corev1.KeyToPath
			if v.Secret != nil {
				var secret corev1.Secret
				err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: v.Secret.SecretName},
					&secret)
				if err != nil {
					return "", err
				}
				files, items = secret.Data, v.Secret.Items
			} else if v.ConfigMap != nil {
				var stored corev1.ConfigMap
				err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: v.ConfigMap.Name}, &stored)
				if err != nil {
					return "", err
				}
				for key, text := range stored.Data {
					files[key] = []byte(text)
				}
				items = v.ConfigMap.Items
			}
			if err := os.MkdirAll(root+m.MountPath, 0o700); err != nil {
				return "", err
			}
			for _, item := range items {
				err := os.WriteFile(filepath.Join(root+m.MountPath, item.Path), files[item.Key], 0o600)
				if err != nil {
					return "", err
				}
			}
		}
	}
	return root, nil
}
