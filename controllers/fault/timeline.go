package fault

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/target"
)

// Events of a timeline, in their usual order after the kill of a pod.
const (
	eventInjected         = "Injected"
	eventMarked           = "Marked"     // something else broke Redis: t0 of type External
	eventActive           = "Active"     // an injection of several steps is complete
	eventEffectLost       = "EffectLost" // something else reverted the fault
	eventReverted         = "Reverted"
	eventStopConditionMet = "StopConditionMet"
	eventTerminating      = "PodTerminating"
	eventDeleted          = "PodDeleted"
	eventCreated          = "ReplacementCreated"
	eventScheduled        = "Scheduled"
	eventRestarted        = "ContainerRestarted"
	eventStarted          = "ContainerStarted"
	eventExited           = "ContainerExited"  // it ended once more than the fault ended it
	eventOOMKilled        = "OOMKilled"        // the kernel ended it at its memory limit
	eventBackOff          = "CrashLoopBackOff" // the kubelet waits before it starts it again
	eventReady            = "Ready"
	eventFirstError       = "FirstError"
	eventFirstSuccess     = "FirstSuccess"
	eventRecovered        = "Recovered"
)

// addPodEvents adds new events of the pods to the timeline. Now is when the pods were read.
func addPodEvents(status *v1alpha1.RedisFaultStatus, pods []corev1.Pod, now time.Time) {
	for _, t := range status.Targets {
		addTargetEvents(status, t, pods, now)
	}
	for i := range pods {
		if hit := targetOf(status, &pods[i]); hit == nil {
			addReplacementEvents(status, &pods[i], now)
		}
	}
}

// addOwnEvents adds what was done to the targets.
func addOwnEvents(status *v1alpha1.RedisFaultStatus, action v1alpha1.FaultType, lasts bool) {
	if b := status.Breach; b != nil && status.InjectedAt != nil {
		appendEvent(status, b.At.Time, eventStopConditionMet, b.Condition, b.Message)
	}
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.InjectedAt == nil {
			continue
		}
		appendEvent(status, t.InjectedAt.Time, eventInjected, t.Pod, fmt.Sprintf("%s; the call took %s", action, format.Duration(tookOf(t))))
		if t.ActiveAt != nil && t.ActiveAt.Sub(t.InjectedAt.Time) > target.AskTimeout {
			appendEvent(status, t.ActiveAt.Time, eventActive, t.Pod, "")
		}
		if lasts && t.RevertedAt != nil {
			appendEvent(status, t.RevertedAt.Time, eventReverted, t.Pod, "")
		}
	}
}

func addTargetEvents(status *v1alpha1.RedisFaultStatus, t v1alpha1.FaultTarget, pods []corev1.Pod, now time.Time) {
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return string(p.UID) == t.UID })
	if i < 0 {
		appendEvent(status, now, eventDeleted, t.Pod, "")
		return
	}
	pod := &pods[i]
	if pod.DeletionTimestamp != nil {
		appendEvent(status, now, eventTerminating, t.Pod, "")
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != t.Container || c.RestartCount <= t.RestartCount {
			continue
		}
		message := fmt.Sprintf("%d restarts", c.RestartCount)
		if ended := c.LastTerminationState.Terminated; ended != nil {
			message = fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode)
		}
		appendEvent(status, now, eventRestarted, t.Pod, message)
		if c.State.Running != nil {
			appendEvent(status, eventTime(now, c.State.Running.StartedAt), eventStarted, t.Pod, "")
		}
		if c.Ready {
			appendEvent(status, eventTime(now, readyAt(pod)), eventReady, t.Pod, "")
		}
	}
	addExits(status, pod, func(container string) int32 {
		if container == t.Container {
			return t.RestartCount
		}
		return math.MaxInt32 // how often it had been restarted before the fault is not known
	}, 1, now)
}

func addReplacementEvents(status *v1alpha1.RedisFaultStatus, pod *corev1.Pod, now time.Time) {
	appendEvent(status, eventTime(now, pod.CreationTimestamp), eventCreated, pod.Name, string(pod.UID))
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		appendEvent(status, eventTime(now, c.LastTransitionTime), eventScheduled, pod.Name, "on "+pod.Spec.NodeName)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			appendEvent(status, eventTime(now, c.State.Running.StartedAt), eventStarted, pod.Name, c.Name)
		}
	}
	addExits(status, pod, func(string) int32 { return 0 }, 0, now)
	if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		appendEvent(status, eventTime(now, c.LastTransitionTime), eventReady, pod.Name, "")
	}
}

// effectCompletedAt returns when the effect was complete, so that what follows is recovery: when the last pod was deleted or its container was
// restarted, and a lasting fault was reverted. It returns the zero time before that.
func effectCompletedAt(status *v1alpha1.RedisFaultStatus, traits contract.Traits) time.Time {
	if traits.External {
		return externalCompletedAt(status)
	}
	var last time.Time
	for _, t := range status.Targets {
		at := t.ActiveAt
		if traits.Lasts > 0 {
			at = t.RevertedAt
		}
		if at == nil {
			return time.Time{}
		}
		if at.After(last) {
			last = at.Time
		}
		if !traits.EndsServer {
			continue
		}
		i := slices.IndexFunc(status.Timeline, func(e v1alpha1.TimelineEvent) bool {
			return e.Object == t.Pod && (e.Event == eventDeleted || e.Event == eventRestarted)
		})
		if i < 0 {
			return time.Time{}
		}
		if at := status.Timeline[i].At.Time; at.After(last) {
			last = at
		}
	}
	return last
}

// addClientEvents adds what clients observed. The times of the impact are from t0.
func addClientEvents(status *v1alpha1.RedisFaultStatus, measured *impact.Impact) {
	t0 := status.InjectedAt.Time
	if measured.TimeToImpact.Known() {
		appendEvent(status, t0.Add(measured.TimeToImpact.Value), eventFirstError, "clients", "the first error, or the start of the first gap")
	}
	if measured.ProbeOutageEnd.Value > 0 {
		appendEvent(status, t0.Add(measured.ProbeOutageEnd.Value), impact.Serves, "probe", fmt.Sprintf("after %s without a success", format.Duration(measured.Outages.Probe.Value))) //nolint:forbidigo // the event is that of the probe
	}
	if measured.OutageEnd.Known() {
		appendEvent(status, t0.Add(measured.OutageEnd.Value), eventFirstSuccess, "clients", fmt.Sprintf("after %s without one", format.Duration(measured.Outages.OfRequests().Value))) //nolint:forbidigo // the event is that of the load's own connections
	}
	if measured.Recovered {
		appendEvent(status, t0.Add(measured.RecoveryTime.Value), eventRecovered, "clients", fmt.Sprintf("sustained at %s of the baseline", format.Share(measured.RecoveredThroughput)))
	}
}

// appendEvent adds an event and keeps the timeline in order. It adds nothing before the injection, and no event of an object twice.
func appendEvent(status *v1alpha1.RedisFaultStatus, at time.Time, name, object, message string) {
	known := slices.ContainsFunc(status.Timeline, func(e v1alpha1.TimelineEvent) bool { return e.Event == name && e.Object == object })
	if status.InjectedAt == nil || known || len(status.Timeline) >= maxEventsFor(name) {
		return
	}
	status.Timeline = append(status.Timeline, newEvent(status.InjectedAt, at, name, object, message))
	slices.SortStableFunc(status.Timeline, func(a, b v1alpha1.TimelineEvent) int { return a.At.Compare(b.At.Time) })
}

// maxEventsFor returns the length of the timeline up to which an event is added. With many targets, events of replacements leave room for the
// injection and the end of each target and for what clients observed: the figures depend on these.
func maxEventsFor(event string) int {
	switch event {
	case eventTerminating, eventCreated, eventScheduled, eventStarted, eventExited, eventOOMKilled, eventBackOff, eventReady:
		return 128
	case eventInjected, eventActive, eventReverted:
		return 192
	}
	return 256
}

func newEvent(t0 *metav1.MicroTime, at time.Time, name, object, message string) v1alpha1.TimelineEvent {
	return v1alpha1.TimelineEvent{At: metav1.NewMicroTime(at), Offset: v1alpha1.MicrosecondsOf(at.Sub(t0.Time)), Event: name, Object: object, Message: digest.Truncate(message, 512)}
}

// eventTime returns the best estimate of an event's time from a Kubernetes timestamp, which is truncated to seconds, and the time of the observation:
// the latter, unless it is after that second (as after a restart of the operator).
func eventTime(seen time.Time, second metav1.Time) time.Time {
	if second.IsZero() {
		return seen
	}
	if end := second.Add(time.Second - time.Millisecond); seen.After(end) {
		return end
	}
	return seen
}

func readyAt(pod *corev1.Pod) metav1.Time {
	if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime
	}
	return metav1.Time{}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// targetOf returns the target that is this pod, or nil.
func targetOf(status *v1alpha1.RedisFaultStatus, pod *corev1.Pod) *v1alpha1.FaultTarget {
	for i := range status.Targets {
		if status.Targets[i].UID == string(pod.UID) {
			return &status.Targets[i]
		}
	}
	return nil
}
