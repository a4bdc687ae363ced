package redisfault

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

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// observe reads everything that the decision depends on.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	f := &v1alpha1.RedisFault{}
	if err := r.Client.Get(ctx, key, f); err != nil {
		return nil, fmt.Errorf("read the fault: %w", err)
	}
	if err := r.endGone(ctx, key, f.UID); err != nil {
		return nil, err
	}
	s := &scope{fault: f, before: f.DeepCopy(), now: r.Clock.Now()}
	if state.MayRun(f, f.Status.Conditions) {
		f.Status = v1alpha1.RedisFaultStatus{}
	}
	tried := s.followReverter(r.Term.Find(f.UID).ReverterOf(&f.Status))
	s.seen = seenOf(f, tried, s.now)
	s.seen.LastCalled = r.Term.Find(f.UID).LastCalled()
	observeRecords(s)
	if s.seen.Finished && !s.seen.Finalizer {
		r.Term.End(f.UID) // another operator may have released it
	}
	if s.seen.Finished || s.seen.Restored != "" {
		return s, nil
	}
	if err := r.observeStop(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeLoad(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeTarget(ctx, s); err != nil {
		return nil, err
	}
	r.observePolicy(ctx, s)
	if err := r.observeTurn(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeLingering(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeQuiet(ctx, s); err != nil {
		return nil, err
	}
	r.observeTrigger(s)
	r.observeMark(s)
	r.observeStaleRecord(ctx, s)
	r.observeImpact(s)
	r.observeRoles(ctx, s)
	return s, nil
}

// seenOf is what the object alone shows of a fault.
func seenOf(f *v1alpha1.RedisFault, revertTried bool, now time.Time) lifecycle.Fault {
	seen := lifecycle.Fault{
		Deleting:    f.DeletionTimestamp != nil,
		Finalizer:   controllerutil.ContainsFinalizer(f, v1alpha1.FinalizerFault),
		Suspend:     f.Spec.Suspend,
		Abort:       f.Spec.Abort,
		TTL:         state.TTL(f.Spec.TTLSecondsAfterFinished),
		Finished:    state.IsFinished(f.Status.Conditions),
		FirstSeen:   state.FirstSeen(f.Status.Conditions, now),
		DryRun:      f.Spec.DryRun,
		Setting:     f.Spec.Setting,
		OwnLoad:     f.Spec.LoadTestRef == nil,
		LoadName:    loadTestName(f),
		Deadline:    faultrun.DeadlineOf(f),
		Confirmed:   f.Status.Effect == v1alpha1.EffectConfirmed,
		RevertTried: revertTried,
		Noted:       state.Noted(f),
	}
	if !seen.DryRun && f.Status.StartTime == nil {
		seen.Restored = state.Restored(f, "RedisFault")
	}
	if f.Status.CompletionTime != nil {
		seen.CompletedAt = f.Status.CompletionTime.Time
	}
	if c := meta.FindStatusCondition(f.Status.Conditions,
		v1alpha1.ConditionTargetsSelected); c != nil && c.Status == metav1.ConditionFalse {
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

// followReverter takes over what this process has done, which is more than what is stored. It
// returns whether it has tried to revert the fault.
func (s *scope) followReverter(v *faultrun.Reverter) (tried bool) {
	if v == nil {
		return false
	}
	s.reverter = v
	v.CatchUp(&s.fault.Status)
	known, tried := v.Progress()
	known.Into(&s.fault.Status)
	return tried
}

// observeRecords evaluates the stored records of the targets.
func observeRecords(s *scope) {
	status := &s.fault.Status
	s.seen.Recorded = isRecorded(status)
	if status.InjectedAt != nil {
		s.seen.InjectedAt = status.InjectedAt.Time
	}
	if !s.seen.Recorded {
		return
	}
	s.seen.RecordedAt = status.StartTime.Time
	s.seen.InjectedAll, s.seen.RevertedAll = true, true
	for i := range status.Targets {
		t := &status.Targets[i]
		s.seen.Progress = cmp.Or(s.seen.Progress, t.Progress)
		observeInjection(&s.seen, t)
		if t.RevertedAt == nil && !t.RevertAbandoned {
			s.seen.RevertedAll = false
			if s.seen.RevertErr == "" && t.RevertAttempts > 0 && t.RevertError != "" {
				s.seen.RevertErr = fmt.Sprintf("pod %s: %s", t.Pod, t.RevertError)
			}
			s.seen.Pending = append(s.seen.Pending, lifecycle.Pending{
				Pod:      t.Pod,
				Attempts: int(t.RevertAttempts),
				Underway: t.Progress != "",
				Moved:    s.reverter.MovedAt(t.Pod),
			})
		}
	}
	s.seen.RevertFailed = abandonedReverts(status.Targets)
	if b := status.Breach; b != nil {
		s.seen.Breach = b.Message
	}
	if since := status.RevertingSince; since != nil {
		s.seen.Reverting, s.seen.RevertSince = true, since.Time
		if deleted := s.fault.DeletionTimestamp; deleted != nil && deleted.After(since.Time) {
			s.seen.RevertSince = deleted.Time
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
	}
	if complete && t.ActiveAt.After(seen.ActiveAt) {
		seen.ActiveAt = t.ActiveAt.Time
	}
}

// abandonedReverts lists the targets whose revert was abandoned, and the commands to revert them
// manually.
func abandonedReverts(targets []v1alpha1.FaultTarget) string {
	var failures []string
	for _, t := range targets {
		if t.RevertAbandoned {
			failures = append(failures,
				fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.RevertError, t.ManualRevertCommand))
		}
	}
	return strings.Join(failures, "; ")
}

// observeStaleRecord queries the targets of an old record without any recorded attempt: a process
// may have ended between an injection and the write of the status.
func (r *Reconciler) observeStaleRecord(ctx context.Context, s *scope) {
	s.seen.Collected = s.seen.Setting || s.test != nil && s.run != nil
	s.seen.Taken = !s.seen.Setting && r.Runs.Taken(s.run, s.fault.UID, r.Clock.Now())
	if !s.seen.Recorded || s.traits.External || s.seen.Attempted || s.seen.Reverting ||
		r.Clock.Since(s.seen.RecordedAt) <= lifecycle.StaleRecord {
		return
	}
	_ = r.connect(ctx, s) // what is missing is an error of Begun
	for i := range s.fault.Status.Targets {
		begun, err := s.injector.Begun(ctx, &s.fault.Status.Targets[i])
		s.seen.Begun = s.seen.Begun || begun || err != nil
	}
}
