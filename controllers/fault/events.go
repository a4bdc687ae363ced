package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
)

// Reasons of the events on what a fault hits.
const (
	reasonInjected     = "FaultInjected"
	reasonReverted     = "FaultReverted"
	reasonOverstayed   = "FaultOverstayed"
	reasonRevertFailed = "FaultRevertFailed"
)

// Limits of the events about a fault.
const (
	// podsWithEvents is on how many pods there are events, the first ones of the record: a fault on a thousand pods must not flood the API server.
	podsWithEvents = 50
	// workloadsWithEvents is the same for workloads, and for nodes.
	workloadsWithEvents = 16
	// referenceTimeout limits the read of the workloads.
	referenceTimeout = 2 * time.Second
)

// emitEvents emits events for what was just stored. As the store fails if anybody else has changed the fault, each change is stored once, and has its events
// once, also after a restart.
func (r *Reconciler) emitEvents(ctx context.Context, s *scope) {
	before, after := &s.before.Status, &s.fault.Status
	if c := state.Changed(before.Conditions, after.Conditions, v1alpha1.ConditionComplete); c != nil {
		kind := corev1.EventTypeNormal
		if meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) || c.Reason == v1alpha1.ReasonNotRecovered || c.Reason == v1alpha1.ReasonStopConditionMet {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(s.fault, nil, kind, c.Reason, "Reconcile", "%s", digest.Truncate(c.Message, 1000))
	}
	if b := after.Breach; before.Breach == nil && b != nil {
		r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonStopConditionMet, "Revert", "%s", digest.Truncate(b.Message, 1000))
	}
	if before.Overstayed == nil && after.Overstayed != nil {
		r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonOverstayed, "Revert", "the fault has stayed for longer than asked, by %s so far", format.Duration(after.Overstayed.Duration()))
	}
	r.emitPartlyReverted(s)
	r.emitNotHeld(s)
	if late := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReverted); late != nil && late.Reason == v1alpha1.ReasonRevertDelayed {
		if old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReverted); old == nil || old.Reason != late.Reason {
			r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, late.Reason, "Revert", "%s", digest.Truncate(late.Message, 1000))
		}
	}
	r.emitHitEvents(ctx, s)
}

// emitPartlyReverted emits an event for what the revert leaves: for the warnings that come after the injection.
func (r *Reconciler) emitPartlyReverted(s *scope) {
	before := &s.before.Status
	for _, w := range s.fault.Status.Warnings {
		if before.InjectedAt != nil && !slices.Contains(before.Warnings, w) {
			r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonPartlyReverted, "Revert", "%s", digest.Truncate(w, 1000))
		}
	}
}

// emitNotHeld emits an event about a setting that its load does not run with, or not any more.
func (r *Reconciler) emitNotHeld(s *scope) {
	held := meta.FindStatusCondition(s.fault.Status.Conditions, v1alpha1.ConditionHeld)
	if held == nil || held.Status != metav1.ConditionFalse {
		return
	}
	if old := meta.FindStatusCondition(s.before.Status.Conditions, v1alpha1.ConditionHeld); old == nil || old.Reason != held.Reason {
		r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, held.Reason, "Hold", "%s", digest.Truncate(held.Message, 1000))
	}
}

// emitHitEvents emits events about the targets, the workloads and the nodes.
func (r *Reconciler) emitHitEvents(ctx context.Context, s *scope) {
	before, after := s.before.Status.Targets, s.fault.Status.Targets
	commands := 0 // for a person, which no limit on pods may hide
	for i := range after {
		if i >= podsWithEvents && !after[i].RevertAbandoned {
			continue
		}
		at := slices.IndexFunc(before, func(old v1alpha1.FaultTarget) bool { return old.UID == after[i].UID })
		if at < 0 {
			continue
		}
		if after[i].RevertAbandoned && !before[at].RevertAbandoned && commands < podsWithEvents {
			commands++
			r.emitAbandoned(s, &after[i])
		}
		if i < podsWithEvents {
			r.emitTargetEvents(s, &before[at], &after[i])
		}
	}
	r.emitWholeEvents(ctx, s)
}

// emitAbandoned emits the event on the fault that says how a person reverts it on a target.
func (r *Reconciler) emitAbandoned(s *scope, t *v1alpha1.FaultTarget) {
	r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonRevertFailed, "Revert", "%s", digest.Truncate(fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.RevertError, t.ManualRevertCommand), 1000))
}

// emitTargetEvents emits events on the fault and on the pod of a target.
func (r *Reconciler) emitTargetEvents(s *scope, before, after *v1alpha1.FaultTarget) {
	if before.InjectedAt == nil && after.InjectedAt != nil {
		r.Recorder.Eventf(s.fault, nil, corev1.EventTypeNormal, "Injected", "Inject", "%s on pod %s (%s)", s.fault.Spec.Action.Type, after.Pod, after.Role)
	}
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.fault.Namespace, Name: after.Pod, UID: types.UID(after.UID)} // it may be gone
	r.emitOn(s, hitChangesOf(&s.before.Status, &s.fault.Status, before, after), fmt.Sprintf("on this %s", strings.ToLower(string(after.Role))), pod)
}

// emitWholeEvents emits events on the workloads and on the nodes that the fault has hit: one for all targets.
func (r *Reconciler) emitWholeEvents(ctx context.Context, s *scope) {
	before, after := &s.before.Status, &s.fault.Status
	whole := func(status *v1alpha1.RedisFaultStatus) *v1alpha1.FaultTarget {
		t := &v1alpha1.FaultTarget{InjectedAt: status.InjectedAt, RevertedAt: status.RevertedAt}
		for i := range status.Targets {
			if one := &status.Targets[i]; one.RevertAbandoned {
				t.RevertAbandoned, t.RevertedAt, t.RevertError, t.ManualRevertCommand = true, nil, one.RevertError, one.ManualRevertCommand
			}
		}
		return t
	}
	changes := hitChangesOf(before, after, whole(before), whole(after))
	if len(changes) == 0 {
		return
	}
	r.emitOn(s, changes, "on "+someOf(podNames(after.Targets)), append(r.workloadReferences(ctx, s), s.nodeReferences()...)...)
}

// someOf are the names of pods, for a reader.
func someOf(pods []string) string {
	const shown = 5
	switch n := len(pods); {
	case n <= shown:
		return strings.Join(pods, ", ")
	case n > podsWithEvents:
		return fmt.Sprintf("%s and %d more pods, of which the first %d have an event", strings.Join(pods[:shown], ", "), n-shown, podsWithEvents)
	default:
		return fmt.Sprintf("%s and %d more pods", strings.Join(pods[:shown], ", "), n-shown)
	}
}

// hitChange is what has happened to something that a fault hits.
type hitChange struct {
	kind, reason, action string
	note                 func(s *scope, on string) string
}

// hitChangesOf are what was just stored about a target, or about all of them together. One write may hold both an injection and its revert.
func hitChangesOf(before, after *v1alpha1.RedisFaultStatus, was, is *v1alpha1.FaultTarget) []hitChange {
	var changes []hitChange
	if was.InjectedAt == nil && is.InjectedAt != nil {
		changes = append(changes, hitChange{corev1.EventTypeWarning, reasonInjected, "Inject", func(s *scope, on string) string {
			if s.fault.Spec.Setting {
				return fmt.Sprintf("%s, as a setting of RedisLoadTest %s", on, after.LoadTest)
			}
			if s.traits.Lasts > 0 {
				on += ", for " + format.Duration(s.traits.Lasts)
			}
			return on + ", under the load of RedisLoadTest " + after.LoadTest
		}})
	}
	if before.Overstayed == nil && after.Overstayed != nil && is.InjectedAt != nil && is.RevertedAt == nil {
		changes = append(changes, hitChange{corev1.EventTypeWarning, reasonOverstayed, "Revert", func(_ *scope, on string) string {
			return fmt.Sprintf("%s has stayed for longer than asked, by %s so far", on, format.Duration(after.Overstayed.Duration()))
		}})
	}
	if !was.RevertAbandoned && is.RevertAbandoned {
		changes = append(changes, hitChange{corev1.EventTypeWarning, reasonRevertFailed, "Revert", func(s *scope, on string) string {
			return fmt.Sprintf("%s could not be reverted: %s; %s", on, is.RevertError, s.manually(is))
		}})
	}
	if was.RevertedAt == nil && is.RevertedAt != nil && is.InjectedAt != nil {
		changes = append(changes, hitChange{corev1.EventTypeNormal, reasonReverted, "Revert", func(s *scope, on string) string {
			if s.traits.Lasts == 0 { // nothing of it stayed
				return ""
			}
			return fmt.Sprintf("%s was reverted %s after the injection", on, format.Duration(is.RevertedAt.Sub(is.InjectedAt.Time)))
		}})
	}
	return changes
}

// manually says where the command is that reverts a fault on a target: the status is gone with a deleted fault.
func (s *scope) manually(t *v1alpha1.FaultTarget) string {
	if s.seen.Deleting {
		return "to revert it manually: " + t.ManualRevertCommand
	}
	return "the status of the fault has the command to do so manually"
}

// emitOn emits events on each of the objects, with the fault as the related one.
func (r *Reconciler) emitOn(s *scope, changes []hitChange, on string, objects ...*corev1.ObjectReference) {
	f := s.fault
	related := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisFault", Namespace: f.Namespace, Name: f.Name, UID: f.UID}
	for _, change := range changes {
		note := change.note(s, on)
		if note == "" {
			continue
		}
		note = digest.Truncate(fmt.Sprintf("RedisFault %s/%s: %s %s", f.Namespace, f.Name, f.Spec.Action.Type, note), 1000)
		for _, object := range objects {
			r.Recorder.Eventf(object, related, change.kind, change.reason, change.action, "%s", note)
		}
	}
}

// workloadReferences are the StatefulSets of the targets. Other controllers have no event, as the operator has no right to read them.
func (r *Reconciler) workloadReferences(ctx context.Context, s *scope) []*corev1.ObjectReference {
	ctx, cancel := context.WithTimeout(ctx, referenceTimeout)
	defer cancel()
	var found []*corev1.ObjectReference
	for _, workload := range s.fault.Status.Workloads {
		name, is := strings.CutPrefix(workload, "StatefulSet/")
		if !is || len(found) == workloadsWithEvents {
			continue
		}
		set := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}}
		if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.fault.Namespace, Name: name}, set); err != nil {
			log.FromContext(ctx).V(1).Info("No event on a StatefulSet", "statefulSet", name, "cause", err.Error())
			continue
		}
		found = append(found, &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: name, UID: set.UID})
	}
	return found
}

// nodeReferences are the nodes that the fault has tainted. As in the kubelet's events, a node's UID is its name: `kubectl describe node` shows those.
func (s *scope) nodeReferences() []*corev1.ObjectReference {
	if !s.traits.Taints {
		return nil
	}
	var found []*corev1.ObjectReference
	for i := range s.fault.Status.Targets {
		name := s.fault.Status.Targets[i].Node
		known := slices.ContainsFunc(found, func(o *corev1.ObjectReference) bool { return o.Name == name })
		if name != "" && !known && len(found) < workloadsWithEvents {
			found = append(found, &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)})
		}
	}
	return found
}
