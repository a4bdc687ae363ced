package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
)

// sustainFor is how long recovery must hold.
const sustainFor = 10 * time.Second // impact.Options' default

// report writes what was observed and decided into the status, once, and then tells it as events.
func (r *RedisFaultReconciler) report(ctx context.Context, s *faultScope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) error {
	if s.seen.Finished {
		return r.reportLosses(ctx, s)
	}
	if s.seen.Deleting && (!s.seen.Recorded || !s.seen.Finalizer) {
		return nil
	}
	status := &s.fault.Status
	status.LoadTest = s.seen.LoadName
	status.ObservedGeneration = s.fault.Generation
	if s.podsRead {
		followPods(status, s.staying(), s.podsAt)
	}
	if status.InjectedAt != nil {
		setImpact(s, o.ended)
	}
	setFaultConditions(s, d, o)
	if o.ended {
		now := metav1.NewMicroTime(r.Clock.Now())
		status.CompletionTime = &now
	}
	if !r.due(s) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.fault.DeepCopy(), onto(s.before)); err != nil {
		return err
	}
	r.tell(s)
	return nil
}

// due says whether the status is worth a write: figures that are still moving wait for their turn every 2 s.
func (r *RedisFaultReconciler) due(s *faultScope) bool {
	if equality.Semantic.DeepEqual(s.before.Status, s.fault.Status) {
		return false
	}
	calm := s.fault.Status.DeepCopy()
	calm.Impact = s.before.Status.Impact
	if calm.Effect == s.before.Status.Effect {
		calm.EffectEvidence = s.before.Status.EffectEvidence
	}
	for i := range calm.Conditions {
		if c := meta.FindStatusCondition(s.before.Status.Conditions, calm.Conditions[i].Type); c != nil && c.Status == calm.Conditions[i].Status && c.Reason == calm.Conditions[i].Reason {
			calm.Conditions[i].Message = c.Message
		}
	}
	if !equality.Semantic.DeepEqual(s.before.Status, *calm) {
		return true
	}
	return r.Sessions.due(s.run, s.fault.UID, r.Clock.Now())
}

// setImpact puts the figures so far into the status; the clients' part of the timeline only when they are final.
func setImpact(s *faultScope, final bool) {
	status := &s.fault.Status
	if s.measured == nil {
		if final && status.Impact != nil && !status.Impact.Recovered {
			status.Impact.Doubts = append(status.Impact.Doubts, v1alpha1.Doubt{Reason: "RecordOutOfReach", Message: "the load's record could not be read to the end of the fault"})
		}
		return
	}
	if final && !s.measured.Recovered && s.seen.Load != lifecycle.LoadRunning && s.recordEnd < status.InjectedAt.Sub(s.test.Status.StartTime.Time)+s.seen.SettleWithin {
		s.measured.Doubts = append(s.measured.Doubts, impact.Doubt{Reason: "LoadEnded",
			Message: fmt.Sprintf("the load ended %s after its start, too early to see whether recovery holds", format.Duration(s.recordEnd))})
	}
	status.Impact = impactStatus(s.measured)
	if !final {
		return
	}
	followClients(status, s.measured)
	status.Impact.Phases = phasesOf(status, s.measured)
	if s.measured.Recovered {
		at := metav1.NewMicroTime(status.InjectedAt.Add(s.measured.RecoveryTime))
		status.RecoveredAt = &at
	}
}

func setFaultConditions(s *faultScope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	status, generation := &s.fault.Status, s.fault.Generation
	reason, message := d.Reason, d.Message
	if o.problem != nil {
		reason, message = o.problem.Reason, o.problem.Message
	}
	recovered := status.Impact != nil && status.Impact.Recovered
	if o.ended && !o.failed && reason == v1alpha1.ReasonSucceeded {
		message = plain(s.fault)
		switch {
		case status.Impact == nil: // the record was never in reach
			reason = v1alpha1.ReasonInconclusive
		case !recovered:
			reason = v1alpha1.ReasonNotRecovered
		}
	}
	if d.Action == lifecycle.FaultObserve || d.Action == lifecycle.FaultHold {
		message = plain(s.fault)
	}
	setStanding(&status.Conditions, generation, standing{
		complete: o.ended && !o.failed, failed: o.ended && o.failed,
		suspended: !o.ended && s.seen.Suspend && !s.seen.Recorded, reason: reason, message: message,
	})
	names := make([]string, len(status.Targets))
	for i, t := range status.Targets {
		names[i] = t.Pod
	}
	all := func(done func(t v1alpha1.FaultTarget) bool) metav1.ConditionStatus {
		return truth(len(status.Targets) > 0 && !slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool { return !done(t) }))
	}
	injected := all(func(t v1alpha1.FaultTarget) bool { return t.InjectedAt != nil })
	reverted := all(func(t v1alpha1.FaultTarget) bool { return t.RevertedAt != nil })
	switch {
	case len(names) > 0:
		setCondition(&status.Conditions, generation, v1alpha1.ConditionTargetsSelected, metav1.ConditionTrue, "Selected", strings.Join(names, ", "))
	case o.problem != nil:
		setCondition(&status.Conditions, generation, v1alpha1.ConditionTargetsSelected, metav1.ConditionFalse, reason, message)
	case s.seen.Trouble == nil:
		setCondition(&status.Conditions, generation, v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason, "not chosen yet")
	}
	setCondition(&status.Conditions, generation, v1alpha1.ConditionInjected, injected, reason, fmt.Sprintf("effect: %s", orNone(string(status.Effect))))
	revert, reverting := "a fault of type "+string(s.fault.Spec.Action.Type)+" leaves nothing to revert", reason
	if s.traits.Lasts > 0 {
		revert = fmt.Sprintf("it stays for %s", format.Duration(s.traits.Lasts))
		if reverted == metav1.ConditionTrue && status.RevertedAt != nil && status.InjectedAt != nil {
			revert = fmt.Sprintf("reverted %s after the injection", format.Duration(status.RevertedAt.Sub(status.InjectedAt.Time)))
		}
	}
	if s.seen.RevertFailed != "" {
		revert, reverting = limited(s.seen.RevertFailed, 32000), v1alpha1.ReasonRevertFailed
	}
	setCondition(&status.Conditions, generation, v1alpha1.ConditionReverted, reverted, reverting, revert)
	state := truth(recovered)
	if !recovered && (!o.ended || o.failed || d.Reason == v1alpha1.ReasonAborted) {
		state = metav1.ConditionUnknown
	}
	setCondition(&status.Conditions, generation, v1alpha1.ConditionRecovered, state, reason, recovery(status))
}

// recovery says when it came.
func recovery(status *v1alpha1.RedisFaultStatus) string {
	if status.Impact == nil || !status.Impact.Recovered {
		return "the throughput has not been back at 90% of the baseline for 10s"
	}
	return fmt.Sprintf("%s after the injection the throughput was back for good, at %s of the baseline", status.Impact.RecoveryTime, status.Impact.Degraded)
}

// plain says in one sentence what clients lived through.
func plain(f *v1alpha1.RedisFault) string {
	i := f.Status.Impact
	if i == nil {
		return "no figures yet"
	}
	text := fmt.Sprintf("throughput fell by %s (from %s/s to %s/s), no success for %s, %d errors, %d requests lost", i.TPSDip, i.BaselineTPS, i.MinTPS, orNone(i.Outage), i.Errors, i.LostRequests)
	if i.Recovered {
		return text + ", recovered after " + i.RecoveryTime
	}
	if f.Status.CompletionTime == nil {
		return text + ", not recovered yet"
	}
	return text + ", not recovered within " + format.Duration(f.Spec.RecoveryDeadline.Duration)
}

func impactStatus(i *impact.Impact) *v1alpha1.Impact {
	out := &v1alpha1.Impact{
		BaselineTPS: format.Rate(i.BaselineRate), MinTPS: format.Rate(i.MinRate), TPSDip: format.Share(i.Dip),
		TimeToImpact: durationOrNone(i.TimeToImpact), Outage: format.Duration(i.Outage), TotalOutage: format.Duration(i.TotalOutage),
		ServerOutage: durationOrNone(i.ServerOutage), ErrorWindow: format.Duration(i.ErrorWindow), Recovered: i.Recovered,
		LostRequests: int64(i.LostRequests + 0.5), Errors: int64(i.Errors), ErrorsByClass: errorCounts(i.ErrorsByClass),
		LatencyP99: &v1alpha1.LatencyAround{Before: quantile(i.Before, i.Before.P99), During: quantile(i.During, i.During.P99), After: quantile(i.After, i.After.P99)},
	}
	if i.ShardOutage > 0 {
		out.ShardOutage, out.Shard = format.Duration(i.ShardOutage), new(int32(i.ShardDown))
	}
	if i.Recovered {
		out.RecoveryTime, out.Degraded = format.Duration(i.RecoveryTime), format.Share(i.Degraded)
	}
	for _, d := range i.Doubts {
		if !slices.ContainsFunc(out.Doubts, func(o v1alpha1.Doubt) bool { return o.Reason == d.Reason }) {
			out.Doubts = append(out.Doubts, v1alpha1.Doubt{Reason: d.Reason, Message: limited(d.Message, 512)})
		}
	}
	return out
}

// quantile is empty where nothing was measured.
func quantile(of impact.Latency, d time.Duration) string {
	if of.Count == 0 {
		return ""
	}
	return format.Duration(d)
}

func durationOrNone(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return format.Duration(d)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// tell turns what was just stored into events.
func (r *RedisFaultReconciler) tell(s *faultScope) {
	before, after := &s.before.Status, &s.fault.Status
	if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionComplete); c != nil {
		if old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionComplete); old == nil || old.Reason != c.Reason || old.Status != c.Status {
			kind := corev1.EventTypeNormal
			if meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) || c.Reason == v1alpha1.ReasonNotRecovered {
				kind = corev1.EventTypeWarning
			}
			r.Recorder.Eventf(s.fault, nil, kind, c.Reason, "Reconcile", "%s", limited(c.Message, 1000))
		}
	}
	for _, t := range after.Targets {
		for _, old := range before.Targets {
			if old.UID == t.UID && !old.RevertAbandoned && t.RevertAbandoned {
				r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonRevertFailed, "Revert", "%s", limited(fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.LastError, t.ManualRevertCommand), 1000))
			}
			if old.UID == t.UID && old.InjectedAt == nil && t.InjectedAt != nil {
				r.Recorder.Eventf(s.fault, nil, corev1.EventTypeNormal, "Injected", "Inject", "%s on pod %s (%s)", s.fault.Spec.Action.Type, t.Pod, t.Role)
			}
		}
	}
}
