package fault

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
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/result"
)

// sustainFor is how long recovery must hold.
const sustainFor = 10 * time.Second // impact.Options' default

// report writes what was observed and decided into the status, once, and then tells it as events.
func (r *Reconciler) report(ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) error {
	if s.seen.Finished {
		return nil
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
	now := metav1.NewMicroTime(r.Clock.Now())
	if status.InjectedAt != nil && status.SettledTime == nil {
		s.setImpact(o.settled || o.ended)
		if o.settled || o.ended {
			s.judgeSettled()
			status.SettledTime = &now
		}
	}
	if o.ended {
		s.setLosses()
		status.CompletionTime = &now
		if !o.failed {
			s.judge(d.Reason)
		}
	}
	status.Display = s.display()
	s.setConditions(d, o)
	if !r.due(s) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.fault.DeepCopy(), state.OptimisticPatch(s.before)); err != nil {
		return err
	}
	r.tell(s)
	return nil
}

// due says whether the status is worth a write: figures that are still moving wait for their turn every 2 s.
func (r *Reconciler) due(s *scope) bool {
	if equality.Semantic.DeepEqual(s.before.Status, s.fault.Status) {
		return false
	}
	calm := s.fault.Status.DeepCopy()
	calm.Impact, calm.Display = s.before.Status.Impact, s.before.Status.Display
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
	return r.Runs.Due(s.run, s.fault.UID, r.Clock.Now())
}

// setImpact puts the figures so far into the status; the clients' part of the timeline only when they are final.
func (s *scope) setImpact(final bool) {
	status := &s.fault.Status
	if s.measured == nil {
		if final && status.Impact != nil && !status.Impact.Recovered {
			status.Impact.Doubts = append(status.Impact.Doubts, v1alpha1.Doubt{Reason: "RecordOutOfReach", Message: "the load's record could not be read to the end of the fault"})
		}
		return
	}
	if final && !s.measured.Recovered && s.seen.Load != lifecycle.LoadRunning && s.recordEnd < status.InjectedAt.Sub(s.test.Status.StartTime.Time)+s.seen.SettleWithin {
		s.measured.Doubt(impact.Doubt{Reason: "LoadEnded",
			Message: fmt.Sprintf("the load ended %s after its start, too early to see whether recovery holds", format.Duration(s.recordEnd))})
	}
	status.Impact = impactOf(s.measured)
	if !final {
		return
	}
	followClients(status, &s.measured.Impact)
	status.Impact.Phases = phasesOf(status, &s.measured.Impact)
	if s.measured.Recovered {
		at := metav1.NewMicroTime(status.InjectedAt.Add(s.measured.RecoveryTime))
		status.RecoveredAt = &at
	}
}

func (s *scope) setConditions(d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	reason, message := d.Reason, d.Message
	if o.problem != nil {
		reason, message = o.problem.Reason, o.problem.Message
	}
	if o.ended && !o.failed && reason == v1alpha1.ReasonSucceeded {
		message = s.sentence()
		switch i := s.fault.Status.Impact; {
		case i == nil: // the record was never in reach
			reason = v1alpha1.ReasonInconclusive
		case !i.Recovered:
			reason = v1alpha1.ReasonNotRecovered
		}
	}
	if d.Action == lifecycle.FaultObserve || d.Action == lifecycle.FaultHold {
		message = s.sentence()
	}
	state.SetSummary(&s.fault.Status.Conditions, s.fault.Generation, state.Summary{
		Complete: o.ended && !o.failed, Failed: o.ended && o.failed,
		Suspended: !o.ended && s.seen.Suspend && !s.seen.Recorded, Reason: reason, Message: message,
	})
	s.setSelected(o, reason, message)
	s.setInjected(reason)
	s.setReverted(reason)
	s.setRecovered(d, o, reason)
}

func (s *scope) set(kind string, status metav1.ConditionStatus, reason, message string) {
	state.SetCondition(&s.fault.Status.Conditions, s.fault.Generation, kind, status, reason, message)
}

// all says whether something is done at every target.
func (s *scope) all(done func(t v1alpha1.FaultTarget) bool) metav1.ConditionStatus {
	targets := s.fault.Status.Targets
	return state.ConditionStatus(len(targets) > 0 && !slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return !done(t) }))
}

func (s *scope) setSelected(o outcome, reason, message string) {
	var names []string
	for _, t := range s.fault.Status.Targets {
		names = append(names, t.Pod)
	}
	switch {
	case len(names) > 0:
		s.set(v1alpha1.ConditionTargetsSelected, metav1.ConditionTrue, "Selected", strings.Join(names, ", "))
	case o.problem != nil:
		s.set(v1alpha1.ConditionTargetsSelected, metav1.ConditionFalse, reason, message)
	case s.seen.Trouble == nil:
		s.set(v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason, "not chosen yet")
	}
}

func (s *scope) setInjected(reason string) {
	injected := s.all(func(t v1alpha1.FaultTarget) bool { return t.InjectedAt != nil })
	s.set(v1alpha1.ConditionInjected, injected, reason, "effect: "+orNone(string(s.fault.Status.Effect)))
}

func (s *scope) setReverted(reason string) {
	status := &s.fault.Status
	reverted := s.all(func(t v1alpha1.FaultTarget) bool { return t.RevertedAt != nil })
	message := "a fault of type " + string(s.fault.Spec.Action.Type) + " leaves nothing to revert"
	switch {
	case s.seen.RevertFailed != "":
		reason, message = v1alpha1.ReasonRevertFailed, state.Truncate(s.seen.RevertFailed, 32000)
	case s.traits.Lasts > 0 && reverted == metav1.ConditionTrue && status.RevertedAt != nil && status.InjectedAt != nil:
		message = fmt.Sprintf("reverted %s after the injection", format.Duration(status.RevertedAt.Sub(status.InjectedAt.Time)))
	case s.traits.Lasts > 0:
		message = "it lasts for " + format.Duration(s.traits.Lasts)
	}
	s.set(v1alpha1.ConditionReverted, reverted, reason, message)
}

func (s *scope) setRecovered(d lifecycle.Decision[lifecycle.FaultAction], o outcome, reason string) {
	status := &s.fault.Status
	recovered := status.Impact != nil && status.Impact.Recovered
	shown := state.ConditionStatus(recovered)
	judged := o.ended || status.SettledTime != nil
	if !recovered && (!judged || o.failed || d.Reason == v1alpha1.ReasonAborted) {
		shown = metav1.ConditionUnknown
	}
	s.set(v1alpha1.ConditionRecovered, shown, reason, recovery(status))
}

// recovery says when it came.
func recovery(status *v1alpha1.RedisFaultStatus) string {
	if status.Impact == nil || !status.Impact.Recovered || status.RecoveredAt == nil {
		return "the throughput has not been back at 90% of the baseline for 10s"
	}
	return fmt.Sprintf("the throughput recovered after %s", format.Duration(status.Impact.RecoveryTime.Value.Duration()))
}

// sentence says in one sentence what clients experienced.
func (s *scope) sentence() string {
	i, display := s.fault.Status.Impact, s.fault.Status.Display
	if i == nil || display == nil {
		return "no figures yet"
	}
	text := fmt.Sprintf("throughput fell by %s, no success for %s, %d errors, %d requests lost", orNone(display.Dip), orNone(display.Outage), i.Errors, i.LostRequests)
	if i.LostWrites != nil {
		text += fmt.Sprintf(", %d acknowledged writes lost", *i.LostWrites)
	}
	switch {
	case i.Recovered:
		return text + ", recovered after " + display.Recovery
	case s.fault.Status.SettledTime == nil:
		return text + ", not recovered yet"
	}
	return text + ", not recovered within " + format.Duration(s.fault.Spec.RecoveryDeadline.Duration)
}

func impactOf(f *result.Fault) *v1alpha1.Impact {
	i := &f.Impact
	out := &v1alpha1.Impact{
		BaselineTPS: v1alpha1.DecimalOf(i.BaselineRate), MinTPS: v1alpha1.DecimalOf(i.MinRate), TPSDip: v1alpha1.DecimalOf(i.Dip),
		TimeToImpact: boundedIf(i.TimeToImpact >= 0, result.Exactly(i.TimeToImpact)), Outage: bounded(result.Exactly(i.Outage)), TotalOutage: v1alpha1.MicrosecondsOf(i.TotalOutage),
		ServerOutage: boundedIf(i.ServerOutage >= 0, result.Exactly(i.ServerOutage)), ErrorWindow: v1alpha1.MicrosecondsOf(i.ErrorWindow), Recovered: i.Recovered,
		LostRequests: int64(i.LostRequests + 0.5), Errors: int64(i.Errors), ErrorsByClass: state.ErrorCounts(result.ErrorCounts(&i.ErrorsByClass)),
		LatencyP99: &v1alpha1.LatencyAround{Before: p99(i.Before), During: p99(i.During), After: p99(i.After)},
	}
	if i.ShardOutage > 0 {
		out.ShardOutage, out.Shard = bounded(result.Exactly(i.ShardOutage)), new(int32(i.ShardDown))
	}
	if took, recovered := f.Recovery(); recovered {
		out.RecoveryTime, out.RecoveredThroughput = bounded(took), v1alpha1.DecimalOf(i.RecoveredThroughput)
	}
	for _, d := range i.Doubts {
		if !slices.ContainsFunc(out.Doubts, func(o v1alpha1.Doubt) bool { return o.Reason == d.Reason }) {
			out.Doubts = append(out.Doubts, v1alpha1.Doubt{Reason: d.Reason, Message: state.Truncate(d.Message, 512)})
		}
	}
	return out
}

func bounded(b result.Bounded) *v1alpha1.BoundedDuration {
	return &v1alpha1.BoundedDuration{Value: v1alpha1.MicrosecondsOf(b.Value), AtLeast: v1alpha1.MicrosecondsOf(b.AtLeast), AtMost: v1alpha1.MicrosecondsOf(b.AtMost)}
}

func boundedIf(known bool, b result.Bounded) *v1alpha1.BoundedDuration {
	if !known {
		return nil
	}
	return bounded(b)
}

// p99 is absent where nothing was measured.
func p99(of impact.Latency) *v1alpha1.Microseconds {
	if of.Count == 0 {
		return nil
	}
	return new(v1alpha1.MicrosecondsOf(of.P99))
}

// display is the main figures as text.
func (s *scope) display() *v1alpha1.FaultDisplay {
	status := &s.fault.Status
	d := &v1alpha1.FaultDisplay{}
	if n := len(status.Targets); n > 0 {
		d.Target = status.Targets[0].Pod
		if n > 1 {
			d.Target += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if s.measured != nil && status.Impact != nil && status.InjectedAt != nil {
		d.Dip, d.Outage = format.Share(s.measured.Dip), format.Duration(s.measured.WorstOutage().Value)
		if took, recovered := s.measured.Recovery(); recovered {
			d.Recovery = format.Duration(took.Value)
		} else if status.SettledTime != nil {
			d.Recovery = v1alpha1.ReasonNotRecovered
		}
	} else if old := status.Display; old != nil {
		d.Dip, d.Outage, d.Recovery = old.Dip, old.Outage, old.Recovery
	}
	if *d == (v1alpha1.FaultDisplay{}) {
		return nil
	}
	return d
}

// judgeSettled judges the objectives that do not wait for the losses. The verdict follows when the fault is complete.
func (s *scope) judgeSettled() {
	if s.measured != nil {
		s.fault.Status.Objectives = verdict.Fault(s.fault.Spec.Objectives, s.measured)
	}
}

// judge sets the verdict.
func (s *scope) judge(reason string) {
	status := &s.fault.Status
	var doubts []impact.Doubt
	switch {
	case status.InjectedAt == nil:
		doubts = append(doubts, impact.Doubt{Reason: "NotInjected", Message: "nothing was broken"})
	case status.Impact == nil:
		doubts = append(doubts, impact.Doubt{Reason: "RecordOutOfReach", Message: "the load's record could not be read: there are no figures"})
	default:
		for _, d := range status.Impact.Doubts {
			doubts = append(doubts, impact.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	if reason == v1alpha1.ReasonAborted || reason == v1alpha1.ReasonStopped {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: "the fault was ended early"})
	}
	if status.InjectedAt != nil && status.Effect != v1alpha1.EffectConfirmed {
		doubts = append(doubts, impact.Doubt{Reason: "EffectUnconfirmed", Message: "the effect of the fault is not confirmed"})
	}
	missed := ""
	if status.Impact != nil && !status.Impact.Recovered {
		missed = fmt.Sprintf("spec.recoveryDeadline: the throughput did not recover within %s", format.Duration(s.fault.Spec.RecoveryDeadline.Duration))
	}
	judgement := verdict.Conclude(append(status.Objectives, verdict.Losses(s.fault.Spec.Objectives, s.losses)...), doubts, missed)
	status.Verdict, status.Objectives = judgement.Verdict, judgement.Objectives
	state.SetObjectivesMet(&status.Conditions, s.fault.Generation, judgement)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// tell turns what was just stored into events.
func (r *Reconciler) tell(s *scope) {
	before, after := &s.before.Status, &s.fault.Status
	if c := state.NewSummary(before.Conditions, after.Conditions); c != nil {
		kind := corev1.EventTypeNormal
		if meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionFailed) || c.Reason == v1alpha1.ReasonNotRecovered {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(s.fault, nil, kind, c.Reason, "Reconcile", "%s", state.Truncate(c.Message, 1000))
	}
	for _, t := range after.Targets {
		for _, old := range before.Targets {
			if old.UID == t.UID && !old.RevertAbandoned && t.RevertAbandoned {
				r.Recorder.Eventf(s.fault, nil, corev1.EventTypeWarning, v1alpha1.ReasonRevertFailed, "Revert", "%s", state.Truncate(fmt.Sprintf("pod %s: %s; to revert manually: %s", t.Pod, t.LastError, t.ManualRevertCommand), 1000))
			}
			if old.UID == t.UID && old.InjectedAt == nil && t.InjectedAt != nil {
				r.Recorder.Eventf(s.fault, nil, corev1.EventTypeNormal, "Injected", "Inject", "%s on pod %s (%s)", s.fault.Spec.Action.Type, t.Pod, t.Role)
			}
		}
	}
}
