package timeline

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/target/podstate"
)

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
	if limit := podstate.MemoryLimit(pod, container); limit != "" {
		return "; its memory limit is " + limit
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
