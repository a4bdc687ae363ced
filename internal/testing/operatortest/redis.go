package operatortest

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

// RedisSet stands in for a StatefulSet of one Redis pod and for the kubelet of its node.
type RedisSet struct {
	*Place
	ip      string
	launch  func() redisProcess                // returns when the server answers; nil if it does not
	Setting func(name, password string) string // as CONFIG GET returns it, or the text of the error
	DownFor time.Duration                      // from the kill to the new server's start

	ended chan struct{} // receives after a server has ended

	looking sync.Mutex // held by sync
	left    bool       // servers that end are not restarted any more

	Mu      sync.Mutex
	Server  redisProcess
	exited  chan struct{} // closed when its end was recorded
	restart int32
	killing time.Time   // when the server was killed, until it has ended
	Killed  []time.Time // when each server was killed, or ended by itself
	gone    []time.Time // when each server had ended
	begun   []time.Time // when each server was started; one more than killed
	up      []time.Time // when each server answered first; one more than killed
	deleted []string    // UIDs of the deleted pods
}

// RedisName is the name of the pod of a RedisSet.
const RedisName = "redis-0"

// RedisNode is the name of its node.
const RedisNode = "node-1"

func (s *RedisSet) start() {
	s.ended = make(chan struct{}, 1)
	s.startServer()
	if err := s.makePod(context.Background()); err != nil {
		s.T.Fatal(err)
	}
	here := sim.Place{T: s.T, Client: s.Client, Namespace: s.Namespace}
	stop := here.StandIn("Redis' node", s.LookEvery, s.ended, s.sync, &corev1.PodList{})
	s.T.Cleanup(func() {
		stop()
		s.Kill()
	})
}

// Address is where the server listens.
func (s *RedisSet) Address() string {
	return s.ip + ":6379"
}

func (s *RedisSet) startServer() {
	begun := time.Now()
	server := s.launch()
	if server == nil {
		return
	}
	exited := make(chan struct{})
	s.Mu.Lock()
	s.Server, s.exited = server, exited
	s.begun, s.up = append(s.begun, begun), append(s.up, time.Now())
	s.Mu.Unlock()
	ended := server.Exited()
	go func() {
		defer close(exited)
		<-ended
		s.Mu.Lock()
		defer s.Mu.Unlock()
		if s.killing.IsZero() { // it ended by itself
			s.killing = time.Now()
		}
		s.Killed, s.killing = append(s.Killed, s.killing), time.Time{}
		s.gone = append(s.gone, time.Now())
		select {
		case s.ended <- struct{}{}:
		default:
		}
	}()
}

// Kill ends the server as SIGKILL does, and returns when it has ended.
func (s *RedisSet) Kill() {
	s.Mu.Lock()
	server, exited := s.Server, s.exited
	select {
	case <-exited:
	default:
		s.killing = time.Now()
	}
	s.Mu.Unlock()
	server.Kill()
	<-exited
}

// Silence stops the server from answering.
func (s *RedisSet) Silence() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Server.Stop()
}

// Flush removes all data of a server in memory.
func (s *RedisSet) Flush() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Server.(interface{ Flush() }).Flush()
}

// Resume ends silence, with a server in memory.
func (s *RedisSet) Resume() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Server.(interface{ Continue() }).Continue()
}

func (s *RedisSet) hasExited() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Hz returns a setting of the server.
func (s *RedisSet) Hz(password string) string {
	return s.Setting("hz", password)
}

// DownTime returns the duration of the last outage, from the kill to when the test saw an answer.
func (s *RedisSet) DownTime() time.Duration {
	_, atMost := s.DownBetween()
	return atMost
}

// DownBetween returns what the last outage took at least, while no process existed, and at most.
// The two differ by the stalls of a busy machine.
func (s *RedisSet) DownBetween() (atLeast, atMost time.Duration) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	n := len(s.Killed)
	if n == 0 || len(s.up) <= n {
		return 0, 0
	}
	return s.begun[n].Sub(s.gone[n-1]), s.up[n].Sub(s.Killed[n-1])
}

// FirstKill returns when a server was first killed.
func (s *RedisSet) FirstKill() time.Time {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Killed[0]
}

// PodsDeleted are the UIDs of the pods that were deleted.
func (s *RedisSet) PodsDeleted() []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return append([]string(nil), s.deleted...)
}

func (s *RedisSet) makePod(ctx context.Context) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: RedisName, Labels: map[string]string{"app": "redis"},
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "apps/v1",
					Kind:       "StatefulSet",
					Name:       "redis",
					UID:        "statefulset",
					Controller: new(true),
				},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: RedisNode, TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: os.TempDir()}}, // the server's dir
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	if err := s.Client.Create(ctx, pod); err != nil {
		return err
	}
	return s.setRunning(ctx, pod)
}

func (s *RedisSet) setRunning(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: s.ip, PodIPs: []corev1.PodIP{{IP: s.ip}}, StartTime: &now,
		HostIP: "127.0.0.1", HostIPs: []corev1.HostIP{{IP: "127.0.0.1"}},
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
	return s.Client.Status().Update(ctx, pod)
}

// Leave stops restarting servers.
func (s *RedisSet) Leave() {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.left = true
}

func (s *RedisSet) sync(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	if s.left {
		return nil
	}
	pod := &corev1.Pod{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: RedisName}, pod)
	switch {
	case apierrors.IsNotFound(err): // deleted at once
		return s.replace(ctx, pod)
	case err != nil:
		return err
	case pod.DeletionTimestamp != nil:
		s.Mu.Lock()
		s.deleted = append(s.deleted, string(pod.UID))
		s.Mu.Unlock()
		s.Kill()
		err := client.IgnoreNotFound(s.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
		if err != nil {
			return err
		}
		return s.replace(ctx, pod)
	case s.hasExited(): // it ended by itself: the container is restarted in place
		time.Sleep(s.DownFor)
		s.startServer()
		s.restart++
		return s.setRunning(ctx, pod)
	}
	return nil
}

func (s *RedisSet) replace(ctx context.Context, old *corev1.Pod) error {
	if !s.hasExited() {
		s.Mu.Lock()
		s.deleted = append(s.deleted, string(old.UID))
		s.Mu.Unlock()
		s.Kill()
	}
	time.Sleep(s.DownFor)
	s.restart = 0
	s.startServer()
	return s.makePod(ctx)
}

// RedisPodOf reads the pod of the RedisSet of a place.
func RedisPodOf(p *Place) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: RedisName}}
	p.Read(pod)
	return pod
}
