package timeline

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target/podstate"
)

// withLoading is the timeline in which the time of a server that answers LOADING is its own: a
// readiness probe that passes meanwhile tells nothing, and the data was there before a client's
// success that came between two polls of the server.
func withLoading(timeline []v1alpha1.TimelineEvent) []v1alpha1.TimelineEvent {
	var first, rest []v1alpha1.TimelineEvent // of one instant, the data is there first
	for _, e := range timeline {
		began := loadingSince(timeline, e.Object, e.At.Time)
		switch {
		case began.IsZero():
		case e.Event == Ready:
			continue
		case e.Event == contract.EventDatasetLoaded:
			served := firstSuccess(timeline, began)
			if !promotedBefore(timeline, served) &&
				served.Before(e.At.Time) && e.At.Sub(served) <= fault.SeenWithin {
				e.At.Time = served
				first = append(first, e)
				continue
			}
		}
		rest = append(rest, e)
	}
	all := slices.Concat(first, rest)
	slices.SortStableFunc(all, func(a, b v1alpha1.TimelineEvent) int {
		return a.At.Compare(b.At.Time)
	})
	return all
}

// promotedBefore reports whether another server had been promoted at an instant, which may be the
// one that clients then reach.
func promotedBefore(timeline []v1alpha1.TimelineEvent, at time.Time) bool {
	return slices.ContainsFunc(timeline, func(e v1alpha1.TimelineEvent) bool {
		return e.Event == contract.EventPromoted && !e.At.After(at)
	})
}

// loadingSince is when a server was first seen to load, if at an instant it is not yet known to
// have its data; zero = it does not load.
func loadingSince(timeline []v1alpha1.TimelineEvent, pod string, at time.Time) time.Time {
	when := func(event string) time.Time {
		i := slices.IndexFunc(timeline, func(e v1alpha1.TimelineEvent) bool {
			return e.Event == event &&
				e.Object == pod
		})
		if i < 0 {
			return time.Time{}
		}
		return timeline[i].At.Time
	}
	began, loaded := when(contract.EventLoading), when(contract.EventDatasetLoaded)
	if began.IsZero() || at.Before(began) || !loaded.IsZero() && at.After(loaded) {
		return time.Time{}
	}
	return began
}

// firstSuccess is the first success of a client after an instant; that of the probe is one. A far
// future = there was none.
func firstSuccess(timeline []v1alpha1.TimelineEvent, after time.Time) time.Time {
	for _, e := range timeline { // in order
		if (e.Event == durations.Serves || e.Event == FirstSuccess) && e.At.After(after) {
			return e.At.Time
		}
	}
	return after.Add(1 << 62)
}

// addExits adds to the timeline why containers of a pod do not stay up: that they ended, were
// killed for their memory, or wait to be started again. Before is the number of restarts of a
// container that are older than the fault, and expected how many of those after it are the fault
// itself.
func addExits(
	status *v1alpha1.RedisFaultStatus, pod *corev1.Pod, before func(container string) int32,
	expected int32, now time.Time,
) {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		ended, times := podstate.LastEnd(c), podstate.TimesEnded(c)
		if ended == nil || times <= before(c.Name) {
			continue
		}
		times -= before(c.Name)
		text := fmt.Sprintf("container %s ended %s, the last time with exit code %d, %s", c.Name,
			timesInWords(times), ended.ExitCode, ended.Reason)
		at := Estimate(now, ended.FinishedAt)
		if ended.Reason == OOMKilled {
			noteEvent(status, at, OOMKilled, pod.Name, text+memoryLimit(pod, c.Name))
		} else if times > expected {
			noteEvent(status, at, Exited, pod.Name, text)
		}
		if w := c.State.Waiting; w != nil && w.Reason == BackOff {
			noteEvent(status, now, BackOff, pod.Name, text+"; "+w.Message)
		}
	}
}

func timesInWords(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// memoryLimit names the memory limit of a container, if it has one.
func memoryLimit(pod *corev1.Pod, container string) string {
	limit := podstate.MemoryLimit(pod, container)
	if limit != nil {
		return "; its memory limit is " + limit.String()
	}
	return ""
}

// noteEvent adds an event, or replaces the message of the one that is there: what happens again and
// again keeps the time of its first occurrence.
func noteEvent(status *v1alpha1.RedisFaultStatus, at time.Time, name, object, message string) {
	i := slices.IndexFunc(status.Timeline, func(e v1alpha1.TimelineEvent) bool {
		return e.Event == name && e.Object == object
	})
	if i < 0 {
		Append(status, at, name, object, message)
		return
	}
	status.Timeline[i].Message = digest.Truncate(message, 512)
}

// Broken returns the events that show what broke Redis: those of pods and servers since t0.
func Broken(status *v1alpha1.RedisFaultStatus) []v1alpha1.TimelineEvent {
	return slices.DeleteFunc(slices.Clone(status.Timeline), func(e v1alpha1.TimelineEvent) bool {
		return e.Event == Marked || sourceOf(e.Event) == v1alpha1.PhaseClient
	})
}

// ends are the events by which a server has ended.
func ends(e *v1alpha1.TimelineEvent) bool {
	return e.Event == Deleted || e.Event == Restarted
}

// externalCompletedAt returns when what broke Redis was complete, as far as it shows: a pod that
// terminates may serve for a while. It returns the zero time before anything shows.
func externalCompletedAt(status *v1alpha1.RedisFaultStatus) time.Time {
	var last time.Time
	terminating := map[string]bool{}
	events := Broken(status)
	for i := range events {
		switch e := &events[i]; {
		case e.Event == Terminating:
			terminating[e.Object] = true
		case ends(e):
			delete(terminating, e.Object)
			last = e.At.Time
		}
	}
	shows := len(events) > 0 || status.MarkedBy == v1alpha1.MarkedByLoad ||
		status.Impact != nil && status.Impact.TimeToImpact != nil
	switch {
	case len(terminating) > 0 || !shows:
		return time.Time{}
	case last.IsZero():
		return status.InjectedAt.Time
	}
	return last
}

// HitPods are the targets that were terminated, deleted or restarted, for display.
func HitPods(status *v1alpha1.RedisFaultStatus) string {
	var hit []string
	events := Broken(status)
	for i := range events {
		e := &events[i]
		if isTarget := slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.Pod == e.Object
		}); isTarget && (ends(e) || e.Event == Terminating) && !slices.Contains(hit, e.Object) {
			hit = append(hit, e.Object)
		}
	}
	switch len(hit) {
	case 0:
		return ""
	case 1:
		return hit[0]
	}
	return fmt.Sprintf("%s and %d more", hit[0], len(hit)-1)
}
