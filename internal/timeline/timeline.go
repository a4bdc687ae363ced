// Package timeline keeps what happened to a fault's targets and to their clients, in order, in the
// status of the fault, and divides a recovery into phases by it. It is pure: what was seen, and
// when, are arguments.
package timeline

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/target/confine"
)

// Events of a timeline, in their usual order after the kill of a pod.
const (
	Injected         = "Injected"
	Marked           = "Marked"         // something else broke Redis: t0 of type External
	Active           = "Active"         // an injection of several steps is complete
	EffectLost       = "EffectLost"     // something else reverted the fault
	InjectedBeside   = "InjectedBeside" // another fault on the same load acts meanwhile
	Reverted         = "Reverted"
	StopConditionMet = "StopConditionMet"
	Terminating      = "PodTerminating"
	Deleted          = "PodDeleted"
	Created          = "ReplacementCreated"
	Scheduled        = "Scheduled"
	Restarted        = "ContainerRestarted"
	Started          = "ContainerStarted"
	Exited           = "ContainerExited"  // it ended once more than the fault ended it
	OOMKilled        = "OOMKilled"        // the kernel ended it at its memory limit
	BackOff          = "CrashLoopBackOff" // the kubelet waits before it starts it again
	Ready            = "Ready"
	FirstError       = "FirstError"
	FirstSuccess     = "FirstSuccess"
	Recovered        = "Recovered"
)

// AddPods adds new events of the pods to the timeline. Now is when the pods were read.
func AddPods(status *v1alpha1.RedisFaultStatus, pods []corev1.Pod, now time.Time) {
	for _, t := range status.Targets {
		addTargetEvents(status, t, pods, now)
	}
	for i := range pods {
		if hit := TargetOf(status, &pods[i]); hit == nil {
			addReplacementEvents(status, &pods[i], now)
		}
	}
}

// AddOwn adds what was done to the targets.
func AddOwn(status *v1alpha1.RedisFaultStatus, action v1alpha1.FaultType, lasts bool) {
	b := status.Breach
	if b != nil && status.InjectedAt != nil {
		Append(status, b.At.Time, StopConditionMet, b.Condition, b.Message)
	}
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.InjectedAt == nil {
			continue
		}
		Append(status, t.InjectedAt.Time, Injected, t.Pod,
			fmt.Sprintf("%s; the call took %s", action, format.Duration(Took(t))))
		if t.ActiveAt != nil && t.ActiveAt.Sub(t.InjectedAt.Time) > confine.AskTimeout {
			Append(status, t.ActiveAt.Time, Active, t.Pod, "")
		}
		if lasts && t.RevertedAt != nil {
			Append(status, t.RevertedAt.Time, Reverted, t.Pod, "")
		}
	}
}

// AddBeside adds that another fault on the same load acts meanwhile: the figures contain what that
// does.
func AddBeside(status *v1alpha1.RedisFaultStatus, other *v1alpha1.RedisFault) {
	if status.InjectedAt == nil {
		return
	}
	at, message := other.Status.InjectedAt.Time, string(other.Spec.Action.Type)
	if before := status.InjectedAt.Sub(at); before > 0 {
		at = status.InjectedAt.Time
		message = fmt.Sprintf("%s, injected %s before this fault", message, format.Duration(before))
	}
	Append(status, at, InjectedBeside, "RedisFault "+other.Name, message)
}

func addTargetEvents(
	status *v1alpha1.RedisFaultStatus, t v1alpha1.FaultTarget, pods []corev1.Pod, now time.Time,
) {
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return string(p.UID) == t.UID })
	if i < 0 {
		Append(status, now, Deleted, t.Pod, "")
		return
	}
	pod := &pods[i]
	if pod.DeletionTimestamp != nil {
		Append(status, now, Terminating, t.Pod, "")
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != t.Container || c.RestartCount <= t.RestartCount {
			continue
		}
		message := fmt.Sprintf("%d restarts", c.RestartCount)
		ended := c.LastTerminationState.Terminated
		if ended != nil {
			message = fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode)
		}
		Append(status, now, Restarted, t.Pod, message)
		if c.State.Running != nil {
			Append(status, Estimate(now, c.State.Running.StartedAt), Started, t.Pod, "")
		}
		if c.Ready {
			Append(status, Estimate(now, readyAt(pod)), Ready, t.Pod, "")
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
	Append(status, Estimate(now, pod.CreationTimestamp), Created, pod.Name, string(pod.UID))
	c := podCondition(pod, corev1.PodScheduled)
	if c != nil && c.Status == corev1.ConditionTrue {
		Append(status, Estimate(now, c.LastTransitionTime), Scheduled, pod.Name, "on "+pod.Spec.NodeName)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			Append(status, Estimate(now, c.State.Running.StartedAt), Started, pod.Name, c.Name)
		}
	}
	addExits(status, pod, func(string) int32 { return 0 }, 0, now)
	c = podCondition(pod, corev1.PodReady)
	if c != nil && c.Status == corev1.ConditionTrue {
		Append(status, Estimate(now, c.LastTransitionTime), Ready, pod.Name, "")
	}
}

// EffectCompletedAt returns when the effect was complete, so that what follows is recovery: when
// the last pod was deleted or its container was restarted, and a lasting fault was reverted. It
// returns the zero time before that.
func EffectCompletedAt(status *v1alpha1.RedisFaultStatus, traits contract.Traits) time.Time {
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
			return e.Object == t.Pod && (e.Event == Deleted || e.Event == Restarted)
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

// AddClients adds what clients observed. The times of the impact are from t0.
func AddClients(status *v1alpha1.RedisFaultStatus, measured *impact.Impact) {
	t0 := status.InjectedAt.Time
	if measured.TimeToImpact.Known() {
		Append(status, t0.Add(measured.TimeToImpact.Value), FirstError, "clients",
			"the first error, or the start of the first gap")
	}
	if measured.ProbeOutageEnd.Value > 0 {
		Append(status, t0.Add(measured.ProbeOutageEnd.Value), durations.Serves, "probe",
			fmt.Sprintf("after %s without a success",
				format.Duration(
					measured.Outages.Probe.Value))) //nolint:forbidigo // the event is that of the probe
	}
	if measured.OutageEnd.Known() {
		Append(status, t0.Add(measured.OutageEnd.Value), FirstSuccess, "clients",
			fmt.Sprintf("after %s without one",
				format.Duration(
					measured.Outages.OfRequests().Value))) //nolint:forbidigo // the event is that of the load's own connections
	}
	if measured.Recovered {
		Append(status, t0.Add(measured.RecoveryTime.Value), Recovered, "clients",
			fmt.Sprintf("sustained at %s of the baseline", format.Share(measured.RecoveredThroughput)))
	}
}

// Append adds an event and keeps the timeline in order. It adds nothing before the injection, and
// no event of an object twice.
func Append(status *v1alpha1.RedisFaultStatus, at time.Time, name, object, message string) {
	known := slices.ContainsFunc(status.Timeline, func(e v1alpha1.TimelineEvent) bool {
		return e.Event == name && e.Object == object
	})
	if status.InjectedAt == nil || known || len(status.Timeline) >= maxEventsFor(name) {
		return
	}
	status.Timeline = append(status.Timeline, newEvent(status.InjectedAt, at, name, object, message))
	slices.SortStableFunc(status.Timeline, func(a, b v1alpha1.TimelineEvent) int {
		return a.At.Compare(b.At.Time)
	})
}

// maxEventsFor returns the length of the timeline up to which an event is added. With many targets,
// events of replacements leave room for the injection and the end of each target and for what
// clients observed: the figures depend on these.
func maxEventsFor(event string) int {
	switch event {
	case Terminating, Created, Scheduled, Started, Exited, OOMKilled, BackOff, Ready:
		return 128
	case Injected, Active, Reverted:
		return 192
	}
	return 256
}

func newEvent(
	t0 *metav1.MicroTime, at time.Time, name, object, message string,
) v1alpha1.TimelineEvent {
	return v1alpha1.TimelineEvent{
		At:      metav1.NewMicroTime(at),
		Offset:  v1alpha1.DurationOf(at.Sub(t0.Time)),
		Event:   name,
		Object:  object,
		Message: digest.Truncate(message, 512),
	}
}

// Estimate returns the best estimate of an event's time from a Kubernetes timestamp, which is
// truncated to seconds, and the time of the observation: the latter, unless it is after that second
// (as after a restart of the operator).
func Estimate(seen time.Time, second metav1.Time) time.Time {
	if second.IsZero() {
		return seen
	}
	end := second.Add(time.Second - time.Millisecond)
	if seen.After(end) {
		return end
	}
	return seen
}

func readyAt(pod *corev1.Pod) metav1.Time {
	c := podCondition(pod, corev1.PodReady)
	if c != nil && c.Status == corev1.ConditionTrue {
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

// TargetOf returns the target that is this pod, or nil.
func TargetOf(status *v1alpha1.RedisFaultStatus, pod *corev1.Pod) *v1alpha1.FaultTarget {
	for i := range status.Targets {
		if status.Targets[i].UID == string(pod.UID) {
			return &status.Targets[i]
		}
	}
	return nil
}

// Took is how long the call that injected a fault into a target took; 0 = that is not known.
func Took(t *v1alpha1.FaultTarget) time.Duration {
	if t.InjectionTook == nil {
		return 0
	}
	return t.InjectionTook.Duration
}
