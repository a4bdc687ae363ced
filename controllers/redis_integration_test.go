//go:build integration

package controllers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// redisSet stands in for a StatefulSet of one Redis pod and for the kubelet of its node. The server is a real one.
type redisSet struct {
	*place
	ip      string
	options []string
	downFor time.Duration // from the kill to the new server's start

	looking sync.Mutex // held while it is looked after
	left    bool       // nobody looks after it any more: what ends stays down

	mu      sync.Mutex
	server  *exec.Cmd
	exited  chan struct{}
	restart int32
	killing time.Time   // when the server was killed that has not ended yet
	killed  []time.Time // when each server was killed, or ended by itself
	up      []time.Time // when each server answered first; one more than killed
	deleted []string    // UIDs of the pods that went
}

const redisName = "redis-0"

func startRedis(p *place, options ...string) *redisSet {
	s := &redisSet{place: p, ip: p.subnet + "2", options: options, downFor: 400 * time.Millisecond}
	s.startServer()
	if err := s.makePod(context.Background()); err != nil {
		p.t.Fatal(err)
	}
	stop := p.standIn("Redis' node", 300*time.Millisecond, s.sync, &corev1.PodList{})
	p.t.Cleanup(func() {
		stop()
		s.kill()
	})
	return s
}

func (s *redisSet) address() string { return s.ip + ":6379" }

func (s *redisSet) startServer() {
	server := exec.Command("redis-server", append([]string{"--port", "6379", "--bind", s.ip, "--save", "", "--dir", s.t.TempDir(), "--loglevel", "warning"}, s.options...)...)
	if err := server.Start(); err != nil {
		s.t.Errorf("redis-server: %v", err)
		return
	}
	exited := make(chan struct{})
	go func() {
		_ = server.Wait()
		s.mu.Lock()
		if s.killing.IsZero() { // it ended by itself
			s.killing = time.Now()
		}
		s.killed, s.killing = append(s.killed, s.killing), time.Time{}
		s.mu.Unlock()
		close(exited)
	}()
	up := firstAnswer(s.t, s.address())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.exited = server, exited
	s.up = append(s.up, up)
}

// firstAnswer waits for the first reply to PING, or refusal for want of a password.
func firstAnswer(t *testing.T, address string) time.Time {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			continue
		}
		fmt.Fprint(c, "PING\r\n")
		reply, _ := bufio.NewReader(c).ReadString('\n')
		c.Close()
		if strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NOAUTH") {
			return time.Now()
		}
	}
	t.Error("redis-server does not answer")
	return time.Now()
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
	_ = server.Process.Kill()
	<-exited
}

// signal sends a signal to the server.
func (s *redisSet) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.server.Process.Signal(sig)
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

// downTime is how long no server answered, the last time.
func (s *redisSet) downTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.killed)
	if n == 0 || len(s.up) <= n {
		return 0
	}
	return s.up[n].Sub(s.killed[n-1])
}

// firstKill is when a server was killed first.
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
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "statefulset", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: os.TempDir()}}, // where the server's dir is
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
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
			Name: "redis", Ready: true, RestartCount: s.restart, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	if s.restart > 0 {
		pod.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	}
	return s.client.Status().Update(ctx, pod)
}

// leave lets what ends from here on stay down.
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
