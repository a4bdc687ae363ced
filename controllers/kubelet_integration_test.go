//go:build integration

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/plan"
)

// kubelet stands in for Job controller, kubelet and garbage collector of one namespace: it makes the indexed pods of Jobs, runs the real
// agent with the real load in this process on each pod's address, and lets go what lost its owner.
type kubelet struct {
	*place
	hosts  map[string]string // host:port of a Service to that of a server: the cluster's DNS
	made   map[types.UID]int // pods made of a Job
	agents map[types.UID]*agentPod
	nextIP int
	swept  time.Time            // when garbage was looked for last
	refuse func(index int) bool // pods that are not to become ready
}

// agentPod is one running load pod.
type agentPod struct {
	ip      string
	cancel  context.CancelFunc
	silence func() // cuts the listener: the pod is there and does not answer
	done    chan struct{}
	err     error
}

func startKubelet(p *place, hosts map[string]string) *kubelet {
	k := &kubelet{place: p, hosts: hosts, made: map[types.UID]int{}, agents: map[types.UID]*agentPod{}, nextIP: 10}
	stop := p.standIn("kubelet", 300*time.Millisecond, k.sync, &corev1.PodList{}, &batchv1.JobList{})
	p.t.Cleanup(func() {
		stop()
		for _, a := range k.agents {
			a.cancel()
			a.silence()
			<-a.done
		}
	})
	return k
}

func (k *kubelet) sync(ctx context.Context) error {
	var jobs batchv1.JobList
	var pods corev1.PodList
	if err := k.client.List(ctx, &pods, client.InNamespace(k.namespace), client.HasLabels{v1alpha1.LabelLoadTest}); err != nil {
		return err
	}
	if err := k.client.List(ctx, &jobs, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	if now := time.Now(); now.Sub(k.swept) > time.Second {
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
			problems = append(problems, k.client.Delete(ctx, pod))
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

// collectGarbage deletes what belongs to a load test or a fault that is gone.
func (k *kubelet) collectGarbage(ctx context.Context, jobs *batchv1.JobList) error {
	owners := map[types.UID]bool{}
	var tests v1alpha1.RedisLoadTestList
	var faults v1alpha1.RedisFaultList
	var maps corev1.ConfigMapList
	var secrets corev1.SecretList
	// What is owned is listed before its owners: one that is made between the lists is not taken for an orphan.
	for _, list := range []client.ObjectList{&maps, &secrets, &tests, &faults} {
		if err := k.client.List(ctx, list, client.InNamespace(k.namespace)); err != nil {
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
		if owner := metav1.GetControllerOf(o); owner != nil && !owners[owner.UID] {
			if err := client.IgnoreNotFound(k.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kubelet) makePods(ctx context.Context, job *batchv1.Job) error {
	for job.DeletionTimestamp == nil && k.made[job.UID] < int(*job.Spec.Completions) {
		index := k.made[job.UID]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: job.Namespace, Name: fmt.Sprintf("%s-%d-%s", job.Name, index, string(job.UID)[:5]), Labels: job.Spec.Template.Labels,
				Annotations:     map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Spec: *job.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.NodeName = "node-1"
		if err := k.client.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		k.made[job.UID]++
	}
	return nil
}

func (k *kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	a := k.agents[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		if a != nil {
			a.cancel()
			a.silence()
			<-a.done
		}
		return client.IgnoreNotFound(k.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case a == nil:
		index, _ := completionIndex(pod)
		if k.refuse != nil && k.refuse(index) {
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

// run starts the agent of a pod on an address of its own. While something that it mounts is missing the pod waits.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod, index int) error {
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
	ip := k.subnet + strconv.Itoa(k.nextIP)
	k.nextIP++
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(agent.Port)))
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	cuttable := &cuttableListener{Listener: listener}
	config.Listener = cuttable
	a := &agentPod{ip: ip, cancel: cancel, silence: cuttable.cut, done: make(chan struct{})}
	k.agents[pod.UID] = a
	go func() {
		defer close(a.done)
		a.err = agent.Serve(running, config)
	}()
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	return k.client.Status().Update(ctx, pod)
}

// mount writes a pod's volumes below a directory.
func (k *kubelet) mount(ctx context.Context, pod *corev1.Pod) (string, error) {
	root := k.t.TempDir()
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name != m.Name {
				continue
			}
			files := map[string][]byte{}
			var items []corev1.KeyToPath
			if v.Secret != nil {
				var secret corev1.Secret
				if err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: v.Secret.SecretName}, &secret); err != nil {
					return "", err
				}
				files, items = secret.Data, v.Secret.Items
			} else if v.ConfigMap != nil {
				var stored corev1.ConfigMap
				if err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: v.ConfigMap.Name}, &stored); err != nil {
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
				if err := os.WriteFile(filepath.Join(root+m.MountPath, item.Path), files[item.Key], 0o600); err != nil {
					return "", err
				}
			}
		}
	}
	return root, nil
}

// agentConfig is what `redquake agent` reads from its files.
func (k *kubelet) agentConfig(root string, index int) (agent.Config, error) {
	text, err := os.ReadFile(root + "/etc/redquake/plan/plan.json")
	if err != nil {
		return agent.Config{}, err
	}
	here := strings.ReplaceAll(string(text), `"/etc/redquake/`, `"`+root+`/etc/redquake/`)
	for name, address := range k.hosts {
		here = strings.ReplaceAll(here, `"`+name+`"`, `"`+address+`"`)
	}
	plan := &plan.Plan{}
	if err := json.Unmarshal([]byte(here), plan); err != nil {
		return agent.Config{}, err
	}
	credentials := agent.Credentials{}
	var token []byte
	for key, into := range map[string]*[]byte{agent.KeyCertificate: &credentials.CertificatePEM, agent.KeyPrivateKey: &credentials.PrivateKeyPEM, agent.KeyToken: &token} {
		if *into, err = os.ReadFile(filepath.Join(root, "etc/redquake/agent", key)); err != nil {
			return agent.Config{}, err
		}
	}
	certificate, err := credentials.Certificate()
	if err != nil {
		return agent.Config{}, err
	}
	runner, err := load.New(plan, index)
	if err != nil {
		return agent.Config{}, err
	}
	return agent.Config{
		Plan: plan, Pod: index, Runner: runner, Token: string(token), Certificate: certificate, Drain: time.Second, Logger: slog.New(slog.DiscardHandler),
	}, nil
}

func (k *kubelet) setEnded(ctx context.Context, pod *corev1.Pod, err error) error {
	ended := &corev1.ContainerStateTerminated{Reason: "Completed"}
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
		ended.Reason, ended.ExitCode, ended.Message = "Error", 1, err.Error()
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended}
	pod.Status.ContainerStatuses[0].Ready = false
	return k.client.Status().Update(ctx, pod)
}

// cuttableListener can end as a killed process does: every connection breaks.
type cuttableListener struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (l *cuttableListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.open = append(l.open, c)
		l.mu.Unlock()
	}
	return c, err
}

func (l *cuttableListener) cut() {
	l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
}
