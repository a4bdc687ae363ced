package redisloadtest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/paging"
)

// setAround sets what was used around the load: by the servers, the load pods and the observed
// pods, and the round trip to Redis.
func (r *Reconciler) setAround(ctx context.Context, s *scope.Test) error {
	if s.Run == nil {
		return nil
	}
	status := &s.Test.Status
	if s.Result != nil {
		status.Servers = digest.Servers(s.Result.Servers)
		status.RoundTrip = digest.RoundTrip(s.Result.RoundTrip)
		if status.Target != nil {
			status.Target.Message = digest.Truncate(targetMessage(s.Result), 512)
		}
		cpu := s.Result.LoadPodCPU
		if cpu != nil && status.LoadPods != nil {
			status.LoadPods.CPU = new(digest.CPU(*cpu))
		}
	}
	setPods(s)
	return r.nameServers(ctx, s)
}

// targetMessage says what the status lacks of Redis' servers.
func targetMessage(r *result.Load) string {
	if n := len(r.Servers); n > digest.MaxServers {
		return strings.TrimSuffix(
			fmt.Sprintf("status.servers has the first %d of %d servers, redquake results all; %s",
				digest.MaxServers, n, r.Target.NotObserved), "; ")
	}
	return r.Target.NotObserved
}

// setPods sets the use of the observed pods, in the order of the spec.
func setPods(s *scope.Test) {
	var pods []v1alpha1.PodsUse
	for _, observed := range s.Test.Spec.Observe.Pods {
		one := v1alpha1.PodsUse{Name: observed.Name}
		if i := slices.IndexFunc(s.Before.Status.Pods, func(p v1alpha1.PodsUse) bool {
			return p.Name == one.Name
		}); i >= 0 {
			one = s.Before.Status.Pods[i]
		}
		if message, ok := s.PodMessages[one.Name]; ok {
			one.Message = message
		}
		if s.Result != nil {
			if i := slices.IndexFunc(s.Result.Pods, func(p result.PodsUse) bool {
				return p.Name == one.Name
			}); i >= 0 {
				p := s.Result.Pods[i]
				one.Count = int32(p.Count)
				one.CPU = new(digest.CPU(p.CPU))
				one.Memory = &v1alpha1.MemoryUse{Max: p.Memory}
			}
		}
		if one.CPU == nil && one.Message == "" && s.Session.Finished {
			one.Message = "no reading falls into the measured time: the metrics API has one about every 15 s, 15 s to 30 s later"
		}
		pods = append(pods, one)
	}
	if !s.Seen.StartedAt.IsZero() {
		s.Test.Status.Pods = pods
	}
}

// nameEvery is how often a pod is looked for that has the address of a server: a server outside of
// the cluster has none.
const nameEvery = 10 * time.Second

// nameServers sets the pods of the servers. A pod that is gone keeps the name under which it was
// seen, until another process replies at its address.
func (r *Reconciler) nameServers(ctx context.Context, s *scope.Test) error {
	servers, unknown, restarted := s.Test.Status.Servers, false, false
	for i := range servers {
		known := slices.IndexFunc(s.Before.Status.Servers, func(b v1alpha1.ServerUse) bool {
			return b.Address == servers[i].Address && b.Pod != ""
		})
		if known >= 0 {
			servers[i].Pod = s.Before.Status.Servers[known].Pod
			servers[i].Restarts = max(servers[i].Restarts, exitsOf(s, servers[i].Pod))
		}
		unknown = unknown || known < 0
		restarted = restarted || known >= 0 &&
			s.Before.Status.Servers[known].Restarts != servers[i].Restarts
	}
	now := r.Clock.Now()
	if !restarted && (!unknown || now.Sub(s.Run.NamedAt) < nameEvery && !s.Session.Finished) {
		return nil
	}
	s.Run.NamedAt = now
	names, err := r.runningPods(ctx, s.Test.Namespace)
	if err != nil {
		return fmt.Errorf("list the pods of the servers: %w", err)
	}
	for i := range servers {
		name := names[hostOf(servers[i].Address)]
		if name == "" && len(servers) == 1 {
			name = r.onlyPod(ctx, s)
		}
		servers[i].Pod = cmp.Or(name, servers[i].Pod)
		servers[i].Restarts = max(servers[i].Restarts, exitsOf(s, servers[i].Pod))
	}
	return nil
}

// exitsOf is how often the container of a pod has ended, apart from faults: as often, it was
// restarted, or is about to be.
func exitsOf(s *scope.Test, pod string) int32 {
	for i := range s.Test.Status.Exits {
		if e := &s.Test.Status.Exits[i]; e.Pod == pod {
			return e.Times
		}
	}
	return 0
}

// runningPods returns the names of a namespace's pods by address, but for those that share their
// node's.
func (r *Reconciler) runningPods(ctx context.Context, namespace string) (map[string]string, error) {
	var page corev1.PodList
	names := map[string]string{}
	err := paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			p := &page.Items[i]
			if p.Status.PodIP != "" && !p.Spec.HostNetwork && p.Status.Phase == corev1.PodRunning {
				names[p.Status.PodIP] = p.Name
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(namespace))
	return names, err
}

// hostOf returns the host of an address host:port; empty if it is none.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// onlyPod returns the name of the target's pod, if it has one alone: the server is then in it, even
// if its address is that of a Service.
func (r *Reconciler) onlyPod(ctx context.Context, s *scope.Test) string {
	spec := &s.Test.Spec.Target
	if spec.Service == nil && spec.PodSelector == nil {
		return ""
	}
	redis := target.Redis{
		Namespace: s.Test.Namespace,
		Live:      r.APIReader,
		Spec:      spec,
	}
	all, err := redis.AllPods(ctx)
	if err != nil {
		return "" // a name less, and no more
	}
	running, err := redis.Running(all)
	if err == nil && len(running) == 1 {
		return running[0].Name
	}
	return ""
}
