package scope

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// RequestsFor returns requests for the selected faults of a namespace; "" = of all namespaces.
func RequestsFor(
	ctx context.Context, reader client.Reader, namespace string,
	selected func(*v1alpha1.RedisFault) bool,
) []reconcile.Request {
	var all v1alpha1.RedisFaultList
	err := reader.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // only a cache that has not started fails; a fault is reconciled once it has
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if f := &all.Items[i]; selected(f) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f)})
		}
	}
	return requests
}

// LoadTestName returns the name of the load test that measures a fault.
func LoadTestName(f *v1alpha1.RedisFault) string {
	if f.Spec.LoadTestRef != nil {
		return f.Spec.LoadTestRef.Name
	}
	return children.ProbeName(f.Name)
}

// IsOpen reports whether a fault is not finished.
func IsOpen(f *v1alpha1.RedisFault) bool {
	return !state.IsFinished(f.Status.Conditions)
}

// IsActing reports whether a fault may have broken something that is not reverted yet.
func IsActing(f *v1alpha1.RedisFault) bool {
	return IsOpen(f) && IsRecorded(&f.Status) && f.Status.RevertedAt == nil
}

// SeenOf is what the object alone shows of a fault.
func SeenOf(f *v1alpha1.RedisFault, revertTried bool, now time.Time) lifecycle.Fault {
	seen := lifecycle.Fault{
		Life: lifecycle.Life{
			Deleting:  f.DeletionTimestamp != nil,
			Finalizer: controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFault),
			Finished:  state.IsFinished(f.Status.Conditions),
			FirstSeen: state.FirstSeen(f.Status.Conditions, now),
			Noted:     state.Noted(f),
		},
		Asked: lifecycle.Asked{
			Suspend:  f.Spec.Suspend,
			Abort:    f.Spec.Abort,
			TTL:      state.TTL(f.Spec.TTLSecondsAfterFinished),
			DryRun:   f.Spec.DryRun,
			Setting:  f.Spec.Setting,
			OwnLoad:  f.Spec.LoadTestRef == nil,
			Deadline: faultrun.DeadlineOf(f),
		},
		MeasuringLoad: lifecycle.MeasuringLoad{LoadName: LoadTestName(f)},
		Effect:        lifecycle.Effect{Confirmed: f.Status.Effect == v1alpha1.EffectConfirmed},
		Revert:        lifecycle.Revert{RevertTried: revertTried},
	}
	if !seen.DryRun && f.Status.StartTime == nil {
		seen.Restored = state.Restored(f, "RedisFault")
	}
	if f.Status.CompletionTime != nil {
		seen.CompletedAt = f.Status.CompletionTime.Time
	}
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionTargetsSelected)
	if c != nil && c.Status == metav1.ConditionFalse {
		seen.Trouble = &problem.Problem{Reason: c.Reason, Message: c.Message}
		seen.TroubleSince = c.LastTransitionTime.Time
	}
	if f.Spec.Setting && f.Status.LoadStartTime != nil {
		seen.LoadStart = f.Status.LoadStartTime.Time
	}
	if f.Status.SettledTime != nil {
		seen.SettledAt = f.Status.SettledTime.Time
	}
	return seen
}

// FollowReverter takes over what this process has done, which is more than what is stored. It
// returns whether it has tried to revert the fault.
func (s *Fault) FollowReverter(v *faultrun.Reverter) (tried bool) {
	if v == nil {
		return false
	}
	s.Reverter = v
	v.CatchUp(&s.Fault.Status)
	known, tried := v.Progress()
	known.Into(&s.Fault.Status)
	return tried
}

// ObserveRecords evaluates the stored records of the targets.
func ObserveRecords(s *Fault) {
	status := &s.Fault.Status
	s.Seen.Recorded = IsRecorded(status)
	if status.InjectedAt != nil {
		s.Seen.InjectedAt = status.InjectedAt.Time
	}
	if !s.Seen.Recorded {
		return
	}
	s.Seen.RecordedAt = status.StartTime.Time
	s.Seen.InjectedAll, s.Seen.RevertedAll = true, true
	hit := 0
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.InjectedAt != nil {
			hit++
		}
		s.Seen.Progress = cmp.Or(s.Seen.Progress, t.Progress)
		observeInjection(&s.Seen, t)
		if t.RevertedAt == nil && !t.RevertAbandoned {
			s.Seen.RevertedAll = false
			if s.Seen.RevertErr == "" && t.RevertAttempts > 0 && t.RevertError != "" {
				s.Seen.RevertErr = fmt.Sprintf("pod %s: %s", t.Pod, t.RevertError)
			}
			s.Seen.Pending = append(s.Seen.Pending, lifecycle.Pending{
				Pod:      t.Pod,
				Attempts: int(t.RevertAttempts),
				Underway: t.Progress != "",
				Moved:    s.Reverter.MovedAt(t.Pod),
			})
		}
	}
	if s.Seen.InjectionErr != "" {
		s.Seen.InjectionErr = HalfDone(&s.Fault.Spec, hit, len(status.Targets)) + s.Seen.InjectionErr
	}
	s.Seen.RevertFailed = AbandonedReverts(status.Targets)
	if b := status.Breach; b != nil {
		s.Seen.Breach = b.Message
	}
	if since := status.RevertingSince; since != nil {
		s.Seen.Reverting, s.Seen.RevertSince = true, since.Time
		deleted := s.Fault.DeletionTimestamp
		if deleted != nil && deleted.After(since.Time) {
			s.Seen.RevertSince = deleted.Time
		}
	}
}

func observeInjection(seen *lifecycle.Fault, t *v1alpha1.FaultTarget) {
	complete := t.InjectedAt != nil && t.ActiveAt != nil
	seen.InjectedAny = seen.InjectedAny || t.InjectedAt != nil
	seen.InjectedAll = seen.InjectedAll && complete
	seen.Attempted = seen.Attempted || t.Attempts > 0 || t.InjectedAt != nil
	if !complete && t.LastError != "" {
		seen.InjectionErr = "pod " + t.Pod + ": " + t.LastError
		seen.NotSupported = t.NotSupported
	}
	if complete && t.ActiveAt.After(seen.ActiveAt) {
		seen.ActiveAt = t.ActiveAt.Time
	}
}

// HalfDone says how many of several targets were hit, as the beginning of a sentence, where some
// were and others were not; "" = otherwise.
func HalfDone(spec *v1alpha1.RedisFaultSpec, hit, targets int) string {
	if hit == 0 || hit == targets {
		return ""
	}
	what := "servers were hit"
	if fault.TraitsOf(spec).NewPod && !spec.Action.SwitchesPower() {
		what = "pods were deleted"
	}
	return fmt.Sprintf("%d of %d %s: ", hit, targets, what)
}

// AbandonedReverts lists the targets whose revert was abandoned, and the commands to revert them
// manually.
func AbandonedReverts(targets []v1alpha1.FaultTarget) string {
	var failures []string
	for _, t := range targets {
		if t.RevertAbandoned {
			failures = append(failures,
				fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.RevertError, t.ManualRevertCommand))
		}
	}
	return strings.Join(failures, "; ")
}

// PodNames are the names of the pods of targets.
func PodNames(targets []v1alpha1.FaultTarget) []string {
	all := make([]string, len(targets))
	for i := range targets {
		all[i] = targets[i].Pod
	}
	return all
}

// RedisOf is the fault's own target, else the one that it remembers, else the load test's; nil
// where none is known.
func RedisOf(f *v1alpha1.RedisFault, test *v1alpha1.RedisLoadTest) *v1alpha1.RedisTarget {
	switch {
	case f.Spec.Target != nil:
		return f.Spec.Target
	case f.Status.Target != nil:
		return f.Status.Target
	case test != nil && test.Spec.Target.IsSet():
		return &test.Spec.Target
	}
	return nil
}

// IsRecorded reports whether targets are stored that the fault acts on.
func IsRecorded(status *v1alpha1.RedisFaultStatus) bool {
	return status.StartTime != nil && len(status.Targets) > 0
}
