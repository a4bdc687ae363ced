// Package announce emits the events about a fault: on the fault, and on the pods, workloads and
// nodes that it hits.
package announce

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
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault/contract"
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
	// podsWithEvents is on how many pods there are events, the first ones of the record: a fault on a
	// thousand pods must not flood the API server.
	podsWithEvents = 50
	// workloadsWithEvents is the same for workloads, and for nodes.
	workloadsWithEvents = 16
	// referenceTimeout limits the read of the workloads.
	referenceTimeout = 2 * time.Second
)

// Announcer emits events.
type Announcer struct {
	Recorder  events.EventRecorder
	APIReader client.Reader // not cached
}

// Change is a fault before and after its status was stored.
type Change struct {
	Before, After *v1alpha1.RedisFault
	Traits        contract.Traits
}

// Emit emits events for what was just stored. As the store fails if anybody else has changed the
// fault, each change is stored once, and has its events once, also after a restart.
func (a Announcer) Emit(ctx context.Context, c *Change) {
	before, after := &c.Before.Status, &c.After.Status
	is := state.Changed(before.Conditions, after.Conditions, v1alpha1.ConditionComplete)
	if is != nil {
		kind := corev1.EventTypeNormal
		if meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) ||
			is.Reason == v1alpha1.ReasonNotRecovered || is.Reason == v1alpha1.ReasonStopConditionMet {
			kind = corev1.EventTypeWarning
		}
		a.Recorder.Eventf(c.After, nil, kind, is.Reason, "Reconcile", "%s",
			digest.Truncate(is.Message, 1000))
	}
	if b := after.Breach; before.Breach == nil && b != nil {
		a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, v1alpha1.ReasonStopConditionMet,
			"Revert", "%s", digest.Truncate(b.Message, 1000))
	}
	if before.Overstayed == nil && after.Overstayed != nil {
		a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, v1alpha1.ReasonOverstayed, "Revert",
			"the fault has stayed for longer than asked, by %s so far",
			format.Duration(after.Overstayed.Duration))
	}
	a.emitPartlyReverted(c)
	a.emitNotHeld(c)
	late := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReverted)
	if late != nil && late.Reason == v1alpha1.ReasonRevertDelayed {
		old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReverted)
		if old == nil || old.Reason != late.Reason {
			a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, late.Reason, "Revert", "%s",
				digest.Truncate(late.Message, 1000))
		}
	}
	a.EmitHits(ctx, c)
}

// emitPartlyReverted emits an event for what the revert leaves: for the warnings that come after
// the injection.
func (a Announcer) emitPartlyReverted(c *Change) {
	before := &c.Before.Status
	for _, w := range c.After.Status.Warnings {
		if before.InjectedAt != nil && !slices.Contains(before.Warnings, w) {
			a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, v1alpha1.ReasonPartlyReverted, "Revert",
				"%s", digest.Truncate(w, 1000))
		}
	}
}

// emitNotHeld emits an event about a setting that its load does not run with, or not any more.
func (a Announcer) emitNotHeld(c *Change) {
	held := meta.FindStatusCondition(c.After.Status.Conditions, v1alpha1.ConditionHeld)
	if held == nil || held.Status != metav1.ConditionFalse {
		return
	}
	old := meta.FindStatusCondition(c.Before.Status.Conditions, v1alpha1.ConditionHeld)
	if old == nil || old.Reason != held.Reason {
		a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, held.Reason, "Hold", "%s",
			digest.Truncate(held.Message, 1000))
	}
}

// EmitHits emits events about the targets, the workloads and the nodes alone.
func (a Announcer) EmitHits(ctx context.Context, c *Change) {
	before, after := c.Before.Status.Targets, c.After.Status.Targets
	commands := 0 // for a person, which no limit on pods may hide
	for i := range after {
		if i >= podsWithEvents && !after[i].RevertAbandoned {
			continue
		}
		at := slices.IndexFunc(before, func(old v1alpha1.FaultTarget) bool {
			return old.UID == after[i].UID
		})
		if at < 0 {
			continue
		}
		if after[i].RevertAbandoned && !before[at].RevertAbandoned && commands < podsWithEvents {
			commands++
			a.emitAbandoned(c, &after[i])
		}
		if i < podsWithEvents {
			a.emitTargetEvents(c, &before[at], &after[i])
		}
	}
	a.emitWholeEvents(ctx, c)
}

// emitAbandoned emits the event on the fault that says how a person reverts it on a target.
func (a Announcer) emitAbandoned(c *Change, t *v1alpha1.FaultTarget) {
	a.Recorder.Eventf(c.After, nil, corev1.EventTypeWarning, v1alpha1.ReasonRevertFailed, "Revert",
		"%s",
		digest.Truncate(fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.RevertError,
			t.ManualRevertCommand), 1000))
}

// emitTargetEvents emits events on the fault and on the pod of a target.
func (a Announcer) emitTargetEvents(c *Change, before, after *v1alpha1.FaultTarget) {
	if before.InjectedAt == nil && after.InjectedAt != nil {
		a.Recorder.Eventf(c.After, nil, corev1.EventTypeNormal, "Injected", "Inject", "%s on pod %s (%s)",
			c.After.Spec.Action.Type, after.Pod, after.Role)
	}
	// it may be gone
	pod := &corev1.ObjectReference{
		APIVersion: "v1",
		Kind:       "Pod",
		Namespace:  c.After.Namespace,
		Name:       after.Pod,
		UID:        types.UID(after.UID),
	}
	a.emitOn(c, hitChangesOf(&c.Before.Status, &c.After.Status, before, after),
		fmt.Sprintf("on this %s", strings.ToLower(string(after.Role))), pod)
}

// emitWholeEvents emits events on the workloads and on the nodes that the fault has hit: one for
// all targets.
func (a Announcer) emitWholeEvents(ctx context.Context, c *Change) {
	before, after := &c.Before.Status, &c.After.Status
	whole := func(status *v1alpha1.RedisFaultStatus) *v1alpha1.FaultTarget {
		t := &v1alpha1.FaultTarget{InjectedAt: status.InjectedAt, RevertedAt: status.RevertedAt}
		for i := range status.Targets {
			if one := &status.Targets[i]; one.RevertAbandoned {
				t.RevertAbandoned = true
				t.RevertedAt = nil
				t.RevertError = one.RevertError
				t.ManualRevertCommand = one.ManualRevertCommand
			}
		}
		return t
	}
	changes := hitChangesOf(before, after, whole(before), whole(after))
	if len(changes) == 0 {
		return
	}
	a.emitOn(c, changes, "on "+someOf(after.Targets),
		append(a.workloadReferences(ctx, c), c.nodeReferences()...)...)
}

// someOf are the names of the pods of targets, for a reader.
func someOf(targets []v1alpha1.FaultTarget) string {
	const shown = 5
	var pods []string
	for i := range targets {
		pods = append(pods, targets[i].Pod)
	}
	switch n := len(pods); {
	case n <= shown:
		return strings.Join(pods, ", ")
	case n > podsWithEvents:
		return fmt.Sprintf("%s and %d more pods, of which the first %d have an event",
			strings.Join(pods[:shown], ", "), n-shown, podsWithEvents)
	default:
		return fmt.Sprintf("%s and %d more pods", strings.Join(pods[:shown], ", "), n-shown)
	}
}

// hitChange is what has happened to something that a fault hits.
type hitChange struct {
	kind, reason, action string
	note                 func(c *Change, on string) string
}

// hitChangesOf are what was just stored about a target, or about all of them together. One write
// may hold both an injection and its revert.
func hitChangesOf(
	before, after *v1alpha1.RedisFaultStatus, was, is *v1alpha1.FaultTarget,
) []hitChange {
	var changes []hitChange
	if was.InjectedAt == nil && is.InjectedAt != nil {
		changes = append(changes, hitChange{
			corev1.EventTypeWarning,
			reasonInjected,
			"Inject",
			func(c *Change, on string) string {
				if c.After.Spec.Setting {
					return fmt.Sprintf("%s, as a setting of RedisLoadTest %s", on, after.LoadTest)
				}
				if c.Traits.Lasts > 0 {
					on += ", for " + format.Duration(c.Traits.Lasts)
				}
				return on + ", under the load of RedisLoadTest " + after.LoadTest
			},
		})
	}
	if before.Overstayed == nil && after.Overstayed != nil && is.InjectedAt != nil &&
		is.RevertedAt == nil {
		changes = append(changes, hitChange{
			corev1.EventTypeWarning,
			reasonOverstayed,
			"Revert",
			func(_ *Change, on string) string {
				return fmt.Sprintf("%s has stayed for longer than asked, by %s so far", on,
					format.Duration(after.Overstayed.Duration))
			},
		})
	}
	if !was.RevertAbandoned && is.RevertAbandoned {
		changes = append(changes, hitChange{
			corev1.EventTypeWarning,
			reasonRevertFailed,
			"Revert",
			func(c *Change, on string) string {
				return fmt.Sprintf("%s could not be reverted: %s; %s", on, is.RevertError, c.manually(is))
			},
		})
	}
	if was.RevertedAt == nil && is.RevertedAt != nil && is.InjectedAt != nil {
		changes = append(changes, hitChange{
			corev1.EventTypeNormal,
			reasonReverted,
			"Revert",
			func(c *Change, on string) string {
				if c.Traits.Lasts == 0 { // nothing of it stayed
					return ""
				}
				return fmt.Sprintf("%s was reverted %s after the injection", on,
					format.Duration(is.RevertedAt.Sub(is.InjectedAt.Time)))
			},
		})
	}
	return changes
}

// manually says where the command is that reverts a fault on a target: the status is gone with a
// deleted fault.
func (c *Change) manually(t *v1alpha1.FaultTarget) string {
	if c.After.DeletionTimestamp != nil {
		return "to revert it manually: " + t.ManualRevertCommand
	}
	return "the status of the fault has the command to do so manually"
}

// emitOn emits events on each of the objects, with the fault as the related one.
func (a Announcer) emitOn(
	c *Change, changes []hitChange, on string, objects ...*corev1.ObjectReference,
) {
	f := c.After
	related := &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       "RedisFault",
		Namespace:  f.Namespace,
		Name:       f.Name,
		UID:        f.UID,
	}
	for _, change := range changes {
		note := change.note(c, on)
		if note == "" {
			continue
		}
		note = digest.Truncate(fmt.Sprintf("RedisFault %s/%s: %s %s", f.Namespace, f.Name,
			f.Spec.Action.Type, note), 1000)
		for _, object := range objects {
			a.Recorder.Eventf(object, related, change.kind, change.reason, change.action, "%s", note)
		}
	}
}

// workloadReferences are the StatefulSets of the targets. Other controllers have no event, as the
// operator has no right to read them.
func (a Announcer) workloadReferences(ctx context.Context, c *Change) []*corev1.ObjectReference {
	ctx, cancel := context.WithTimeout(ctx, referenceTimeout)
	defer cancel()
	var found []*corev1.ObjectReference
	for _, workload := range c.After.Status.Workloads {
		name, ok := strings.CutPrefix(workload, "StatefulSet/")
		if !ok || len(found) == workloadsWithEvents {
			continue
		}
		set := &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		}
		err := a.APIReader.Get(ctx, client.ObjectKey{Namespace: c.After.Namespace, Name: name},
			set)
		if err != nil {
			log.FromContext(ctx).Info("No event on a StatefulSet", "statefulSet", name, "cause",
				err.Error())
			continue
		}
		found = append(found, &corev1.ObjectReference{
			APIVersion: "apps/v1",
			Kind:       "StatefulSet",
			Namespace:  set.Namespace,
			Name:       name,
			UID:        set.UID,
		})
	}
	return found
}

// nodeReferences are the nodes that the fault has tainted. As in the kubelet's events, a node's UID
// is its name: `kubectl describe node` shows those.
func (c *Change) nodeReferences() []*corev1.ObjectReference {
	if !c.Traits.Taints {
		return nil
	}
	var found []*corev1.ObjectReference
	for i := range c.After.Status.Targets {
		name := c.After.Status.Targets[i].Node
		known := slices.ContainsFunc(found, func(o *corev1.ObjectReference) bool {
			return o.Name == name
		})
		if name != "" && !known && len(found) < workloadsWithEvents {
			found = append(found, &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "Node",
				Name:       name,
				UID:        types.UID(name),
			})
		}
	}
	return found
}
