package redisloadtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/figures"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/podstate"
)

const (
	// exitsEvery is how often the containers of the target are looked at while the load runs. The
	// kubelet counts those that end meanwhile.
	exitsEvery = 10 * time.Second
	// mostExits is how many the status has at most.
	mostExits = 64
	// exitTime is how exactly the kubelet tells when a container ended.
	exitTime = time.Second
)

// observeExits adds the containers of Redis that ended to the status. A server that ends while it
// reads its data never replies to INFO, so that the load does not see that it started again; nor
// does any client see that it was killed for its memory.
func (r *Reconciler) observeExits(ctx context.Context, s *scope.Test) error {
	spec, now := &s.Test.Spec.Target, r.Clock.Now()
	if spec.Service == nil && spec.PodSelector == nil || !s.Run.Begun() ||
		now.Before(s.Seen.StartedAt) || now.Sub(s.Run.ExitsAt) < exitsEvery && !s.Session.Finished {
		return nil
	}
	redis := target.Redis{
		Namespace: s.Test.Namespace,
		Live:      r.APIReader,
		Spec:      spec,
	}
	pods, err := redis.ServerPods(ctx)
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return nil // the Service selects no pods
	}
	if err != nil {
		return fmt.Errorf("read the containers of Redis: %w", err)
	}
	s.Run.ExitsAt = now
	for i := range pods {
		container := redis.Container(&pods[i])
		for k := range pods[i].Status.ContainerStatuses {
			c := &pods[i].Status.ContainerStatuses[k]
			if c.Name == container.Name {
				addExit(s, &pods[i], c, now)
			}
		}
	}
	return nil
}

// addExit adds the ends of a container since the last look at it, or since the load began, unless a
// fault explains the last one.
func addExit(s *scope.Test, pod *corev1.Pod, c *corev1.ContainerStatus, now time.Time) {
	exits := s.Test.Status.Exits
	known := slices.IndexFunc(exits, func(e v1alpha1.ContainerExit) bool { return e.Pod == pod.Name })
	ends, key := podstate.TimesEnded(c), string(pod.UID)+"/"+c.Name
	before, looked := s.Run.Ends[key]
	if s.Run.Ends == nil {
		s.Run.Ends = map[string]int32{}
	}
	s.Run.Ends[key] = ends
	last := podstate.LastEnd(c)
	if last == nil || !last.FinishedAt.Add(exitTime).After(s.Seen.StartedAt) ||
		hasFaultAt(s, last.FinishedAt.Time, now) {
		return
	}
	switch {
	case looked:
	case known >= 0: // by an operator before this one
		before = exits[known].RestartCount
	default:
		before = ends - 1 // those before the last may be older than the load
	}
	if known < 0 {
		if ends <= before || len(exits) == mostExits {
			return
		}
		exits, known = append(exits, v1alpha1.ContainerExit{Pod: pod.Name, Container: c.Name}), len(exits)
	}
	e := &exits[known]
	e.Times += max(0, ends-before)
	e.At = new(metav1.NewTime(last.FinishedAt.Time))
	e.ExitCode = last.ExitCode
	e.Reason = digest.Truncate(last.Reason, 128)
	e.RestartCount = ends
	e.Message = digest.Truncate(exitMessage(pod, c, e), 512)
	s.Test.Status.Exits = exits
}

// hasFaultAt reports whether a fault explains what happened at an instant, to the second.
func hasFaultAt(s *scope.Test, at, now time.Time) bool {
	since := at.Sub(s.Seen.StartedAt)
	for _, w := range figures.FaultWindows(s, now) {
		if since >= w.From-exitTime && since <= w.To+exitTime {
			return true
		}
	}
	return false
}

func exitMessage(pod *corev1.Pod, c *corev1.ContainerStatus, e *v1alpha1.ContainerExit) string {
	times := "once"
	if e.Times > 1 {
		times = fmt.Sprintf("%d times", e.Times)
	}
	text := fmt.Sprintf(
		"container %s of pod %s ended %s without a fault, the last time with exit code %d, %s",
		e.Container, e.Pod, times, e.ExitCode, e.Reason)
	limit := podstate.MemoryLimit(pod, e.Container)
	if limit != nil {
		text += "; its memory limit is " + limit.String()
	}
	if w := c.State.Waiting; w != nil {
		text += "; it waits to be started again: " + w.Reason
	}
	return text
}
