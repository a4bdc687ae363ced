//go:build e2e

package soak

import (
	"context"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

const (
	lookEvery = time.Second
	lookLimit = 2 * time.Second // of a look at the API server
	freshness = 5 * time.Second // of the Lease: a manager that leads renews it every 2 s
	// within which the API server answers a look, or the manager cannot be expected to be prompt either
	prompt = time.Second
)

// snapshot is what the latest looks saw.
type snapshot struct {
	servers     map[string]string // address by world/pod
	managers    []corev1.Pod
	faults      map[types.UID]*Seen[*v1alpha1.RedisFault]
	loadTests   map[types.UID]*Seen[*v1alpha1.RedisLoadTest]
	experiments map[types.UID]*Seen[*v1alpha1.RedisExperiment]
	restarts    map[string]bool // that were noted
	threads     map[string]CPU  // of managers, by file
}

// observe looks at everything every second until ctx ends, each thing on its own: what hangs does not keep the others
// from being seen.
func (s *soak) observe(ctx context.Context, running *sync.WaitGroup) {
	s.seen = snapshot{
		servers:     map[string]string{},
		faults:      map[types.UID]*Seen[*v1alpha1.RedisFault]{},
		loadTests:   map[types.UID]*Seen[*v1alpha1.RedisLoadTest]{},
		experiments: map[types.UID]*Seen[*v1alpha1.RedisExperiment]{},
		restarts:    map[string]bool{},
		threads:     map[string]CPU{},
	}
	s.lookAtPods(ctx)
	s.facts.Restarts = nil // those of before
	for _, look := range []func(context.Context){
		s.lookAtLease, s.lookAtNodes, s.lookAtWorkloads, s.lookAtPods,
		s.lookAtObjects, s.lookAtCPU,
	} {
		running.Go(func() { every(ctx, lookEvery, look) })
	}
	running.Go(func() { every(ctx, lookEvery, s.lookAtServers) })
	running.Go(func() { s.keepLogs(ctx) })
}

func every(ctx context.Context, period time.Duration, look func(context.Context)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		look(limited)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// locked changes what was seen.
func (s *soak) locked(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *soak) lookAtLease(ctx context.Context) {
	lease := &coordinationv1.Lease{}
	asked := time.Now()
	err := s.Get(ctx, client.ObjectKey{Namespace: system, Name: leaseName}, lease)
	now := time.Now()
	ok := err == nil && now.Sub(asked) < prompt &&
		strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), managerName) && lease.Spec.RenewTime != nil &&
		now.Sub(lease.Spec.RenewTime.Time) < freshness
	s.locked(func() { s.facts.Able = append(s.facts.Able, Sample{now, ok}) })
}

func (s *soak) lookAtNodes(ctx context.Context) {
	at := time.Now()
	var nodes corev1.NodeList
	if s.List(ctx, &nodes) != nil {
		return
	}
	s.locked(func() {
		for _, node := range nodes.Items {
			for key := range node.Annotations {
				if uid, is := strings.CutPrefix(key, v1alpha1.AnnotationTaintPrefix); is {
					s.facts.See(MarkTaint(uid), at)
				}
			}
		}
	})
}

func (s *soak) lookAtWorkloads(ctx context.Context) {
	for _, w := range s.worlds {
		at := time.Now()
		set := &appsv1.StatefulSet{}
		if s.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.App}, set) != nil {
			return
		}
		if fault := set.Spec.Template.Annotations[MarkAnnotation]; fault != "" {
			s.locked(func() { s.facts.See(MarkTemplate(w.Name, fault), at) })
		}
	}
}

func (s *soak) lookAtPods(ctx context.Context) {
	for _, w := range s.worlds {
		at := time.Now()
		var pods corev1.PodList
		if s.List(ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": w.App}) != nil {
			return
		}
		s.locked(func() {
			for _, pod := range pods.Items {
				s.seen.servers[w.Name+"/"+pod.Name] = pod.Status.PodIP
				if cpu := pod.Spec.Containers[0].Resources.Limits.Cpu(); cpu != nil {
					s.facts.See(MarkResources(w.Name, cpu.MilliValue()), at)
				}
			}
		})
	}
	var managers corev1.PodList
	if s.List(ctx, &managers, client.InNamespace(system), client.MatchingLabels{
		"app.kubernetes.io/component": "manager",
	}) != nil {
		return
	}
	s.locked(func() {
		s.seen.managers = managers.Items
		for _, pod := range managers.Items {
			for _, c := range pod.Status.ContainerStatuses {
				before := c.RestartCount // it counts when the next one starts
				if c.State.Waiting == nil {
					before--
				}
				s.noteRestart(pod.Name, before, c.LastTerminationState.Terminated)
				s.noteRestart(pod.Name, c.RestartCount, c.State.Terminated)
			}
		}
	})
}

// noteRestart notes the end of a manager's container once. One that was told to end, with its pod, exits with 0.
func (s *soak) noteRestart(pod string, number int32, end *corev1.ContainerStateTerminated) {
	if end == nil || end.ExitCode == 0 || s.seen.restarts[end.ContainerID] {
		return
	}
	s.seen.restarts[end.ContainerID] = true
	s.facts.Restarts = append(s.facts.Restarts, Restart{
		Pod:    pod,
		Number: number,
		At:     end.FinishedAt.Time,
		Reason: end.Reason,
		Code:   end.ExitCode,
	})
}

func (s *soak) lookAtObjects(ctx context.Context) {
	var faults v1alpha1.RedisFaultList
	var tests v1alpha1.RedisLoadTestList
	var experiments v1alpha1.RedisExperimentList
	if s.List(ctx, &faults) != nil || s.List(ctx, &tests) != nil || s.List(ctx, &experiments) != nil {
		return
	}
	s.locked(func() {
		note(s, s.seen.faults, pointers(faults.Items))
		note(s, s.seen.loadTests, pointers(tests.Items))
		note(s, s.seen.experiments, pointers(experiments.Items))
	})
}

func pointers[T any](items []T) (all []*T) {
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// note keeps the last version of each object of a world, and that those are gone that are not listed.
func note[T metav1.Object](s *soak, seen map[types.UID]*Seen[T], listed []T) {
	now := map[types.UID]bool{}
	for _, object := range listed {
		for _, w := range s.worlds {
			if w.namespace == object.GetNamespace() {
				now[object.GetUID()] = true
				seen[object.GetUID()] = &Seen[T]{Object: object, World: w.Name}
			}
		}
	}
	for uid, o := range seen {
		o.Gone = !now[uid]
	}
}

// lastVersions makes what was seen of the objects a part of the facts.
func (s *soak) lastVersions() {
	ctx, cancel := context.WithTimeout(s.Context(), requestLimit)
	defer cancel()
	s.lookAtObjects(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.seen.faults {
		s.facts.Faults = append(s.facts.Faults, *f)
	}
	for _, t := range s.seen.loadTests {
		s.facts.LoadTests = append(s.facts.LoadTests, *t)
	}
	for _, e := range s.seen.experiments {
		s.facts.Experiments = append(s.facts.Experiments, *e)
	}
}

// lookAtServers asks every server for the setting that faults change, by connections of its own, whether or not there
// is an API server.
func (s *soak) lookAtServers(ctx context.Context) {
	servers := map[string]string{}
	s.locked(func() {
		for name, ip := range s.seen.servers {
			if ip != "" {
				servers[name] = ip
			}
		}
	})
	var asking sync.WaitGroup
	for name, ip := range servers {
		asking.Go(func() {
			at := time.Now()
			c := redisAt(ip, "6379", lookLimit)
			defer func() { _ = c.Close() }()
			got, err := c.ConfigGet(ctx, MarkParameter).Result()
			if err != nil {
				return
			}
			world, _, _ := strings.Cut(name, "/")
			s.locked(func() {
				s.facts.Polls[name] = append(s.facts.Polls[name], at)
				s.facts.See(MarkConfig(world, got[MarkParameter]), at)
			})
		})
	}
	asking.Wait()
}

// pulse creates a new object every few seconds, and notes when the operator has written to its status.
func (s *soak) pulse(ctx context.Context) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	free := make(chan struct{}, 20)
	ticker := time.NewTicker(6 * time.Second)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case free <- struct{}{}:
			waiting.Go(func() {
				s.beat(ctx, n)
				<-free
			})
		default: // as many wait for an answer already
		}
	}
}
