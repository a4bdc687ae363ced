package controllers

import (
	"context"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/sim"
)

// redisProcess is a running server, a real one or one in memory.
type redisProcess interface {
	Kill() // as SIGKILL does
	Stop() // SIGSTOP
	Exited() <-chan struct{}
}

// redisSet stands in for a StatefulSet of one Redis pod and for the kubelet of its node.
type redisSet struct {
	*place
	ip      string
	launch  func() redisProcess                // returns when the server answers; nil if it does not
	setting func(name, password string) string // as CONFIG GET returns it, or the text of the error
	downFor time.Duration                      // from the kill to the new server's start

	ended chan struct{} // receives after a server has ended

	looking sync.Mutex // held by sync
	left    bool       // servers that end are not restarted any more

	mu      sync.Mutex
	server  redisProcess
	exited  chan struct{} // closed when its end was recorded
	restart int32
	killing time.Time   // when the server was killed, until it has ended
	killed  []time.Time // when each server was killed, or ended by itself
	gone    []time.Time // when each server had ended
	begun   []time.Time // when each server was started; one more than killed
	up      []time.Time // when each server answered first; one more than killed
	deleted []string    // UIDs of the deleted pods
}

const redisName = "redis-0"

func (s *redisSet) start() {
	s.ended = make(chan struct{}, 1)
	s.startServer()
	if err := s.makePod(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	here := sim.Place{T: s.t, Client: s.client, Namespace: s.namespace}
	stop := here.StandIn("Redis' node", s.lookEvery, s.ended, s.sync, &corev1.PodList{})
	s.t.Cleanup(func() {
		stop()
		s.kill()
	})
}

func (s *redisSet) address() string { return s.ip + ":6379" }

func (s *redisSet) startServer() {
	begun := time.Now()
	server := s.launch()
	if server == nil {
		return
	}
	exited := make(chan struct{})
	s.mu.Lock()
	s.server, s.exited = server, exited
	s.begun, s.up = append(s.begun, begun), append(s.up, time.Now())
	s.mu.Unlock()
	ended := server.Exited()
	go func() {
		defer close(exited)
		<-ended
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.killing.IsZero() { // it ended by itself
			s.killing = time.Now()
		}
		s.killed, s.killing = append(s.killed, s.killing), time.Time{}
		s.gone = append(s.gone, time.Now())
		select {
		case s.ended <- struct{}{}:
		default:
		}
	}()
}

// kill ends the server as SIGKILL does, and returns when it has ended.
func (s *redisSet) kill() {
	s.mu.Lock()
	server, exited := s.server, s.exited
	select {
	case <-exited:
	default:
		s.killing = time.Now()
	}
	s.mu.Unlock()
	server.Kill()
	<-exited
}

// silence stops the server from answering.
func (s *redisSet) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Stop()
}

// flush removes all data of a server in memory.
func (s *redisSet) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.(interface{ Flush() }).Flush()
}

// resume ends silence, with a server in memory.
func (s *redisSet) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.(interface{ Continue() }).Continue()
}

func (s *redisSet) hasExited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// hz returns a setting of the server.
func (s *redisSet) hz(password string) string { return s.setting("hz", password) }

// downTime returns the duration of the last outage, from the kill to when the test saw an answer.
func (s *redisSet) downTime() time.Duration {
	_, atMost := s.downBetween()
	return atMost
}

// downBetween returns what the last outage took at least, while no process existed, and at most. The two differ by the
// stalls of a busy machine.
func (s *redisSet) downBetween() (atLeast, atMost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.killed)
	if n == 0 || len(s.up) <= n {
		return 0, 0
	}
	return s.begun[n].Sub(s.gone[n-1]), s.up[n].Sub(s.killed[n-1])
}

// firstKill returns when a server was first killed.
func (s *redisSet) firstKill() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed[0]
}

func (s *redisSet) podsDeleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.deleted...)
}

func (s *redisSet) makePod(ctx context.Context) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: redisName, Labels: map[string]string{"app": "redis"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "statefulset", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: os.TempDir()}}, // the server's dir
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	if err := s.client.Create(ctx, pod); err != nil {
		return err
	}
	return s.setRunning(ctx, pod)
}

func (s *redisSet) setRunning(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: s.ip, PodIPs: []corev1.PodIP{{IP: s.ip}}, StartTime: &now,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name:         "redis",
			Ready:        true,
			RestartCount: s.restart,
			State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	if s.restart > 0 {
		pod.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"},
		}
	}
	return s.client.Status().Update(ctx, pod)
}

// leave stops restarting servers.
func (s *redisSet) leave() {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.left = true
}

func (s *redisSet) sync(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.left {
		return nil
	}
	pod := &corev1.Pod{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: redisName}, pod)
	switch {
	case apierrors.IsNotFound(err): // deleted at once
		return s.replace(ctx, pod)
	case err != nil:
		return err
	case pod.DeletionTimestamp != nil:
		s.mu.Lock()
		s.deleted = append(s.deleted, string(pod.UID))
		s.mu.Unlock()
		s.kill()
		if err := client.IgnoreNotFound(s.client.Delete(ctx, pod, client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		return s.replace(ctx, pod)
	case s.hasExited(): // it ended by itself: the container is restarted in place
		time.Sleep(s.downFor)
		s.startServer()
		s.restart++
		return s.setRunning(ctx, pod)
	}
	return nil
}

func (s *redisSet) replace(ctx context.Context, old *corev1.Pod) error {
	if !s.hasExited() {
		s.mu.Lock()
		s.deleted = append(s.deleted, string(old.UID))
		s.mu.Unlock()
		s.kill()
	}
	time.Sleep(s.downFor)
	s.restart = 0
	s.startServer()
	return s.makePod(ctx)
}
