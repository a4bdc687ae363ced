package loadtest

import (
	"cmp"
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
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// report writes what was observed and decided into the status, once, and then tells it as events.
func (r *Reconciler) report(ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.LoadTestAction], o outcome) error {
	if s.seen.Finished {
		r.Runs.Drop(s.test.UID)
		return nil
	}
	status := &s.test.Status
	status.ObservedGeneration = s.test.Generation
	if s.plan != nil && d.Action != lifecycle.LoadTestSuspend {
		r.setLoadPods(s)
	}
	s.setFigures(r.Clock.Now(), o.ended)
	s.setVerification()
	if o.ended {
		now := metav1.NewMicroTime(r.Clock.Now())
		status.CompletionTime = &now
		if err := s.setResults(ctx, resultsStore{client: r.Client, test: s.test}); err != nil {
			return err
		}
		if !o.failed {
			s.judge(d.Reason)
		}
	}
	s.setConditions(d, o)
	if !r.due(s) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.test.DeepCopy(), state.OptimisticPatch(s.before)); err != nil {
		return err
	}
	r.tell(s)
	if o.ended {
		r.Runs.Drop(s.test.UID)
	}
	return nil
}

// due says whether the status is worth a write: figures that are still moving wait for their turn every 2 s.
func (r *Reconciler) due(s *scope) bool {
	before, after := &s.before.Status, &s.test.Status
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	if len(before.Conditions) != len(after.Conditions) || before.Verdict != after.Verdict || len(before.Faults) != len(after.Faults) ||
		(before.Verification == nil) != (after.Verification == nil) || judgedTrials(before.Search) != judgedTrials(after.Search) {
		return true
	}
	for _, c := range after.Conditions {
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old == nil || old.Status != c.Status || old.Reason != c.Reason {
			return true
		}
	}
	return r.Runs.Due(s.run, s.test.UID, r.Clock.Now())
}

func (r *Reconciler) setLoadPods(s *scope) {
	status := &s.test.Status
	status.LoadPods = &v1alpha1.LoadPodsStatus{Desired: int32(s.seen.PodsWanted), Lost: int32(len(s.lost))}
	for _, p := range s.session.Pods {
		if p.Reachable && !p.Gone && p.State != "" && p.State != "Preparing" {
			status.LoadPods.Ready++
		}
	}
	if s.session.Begun == len(s.session.Pods) && s.session.Skew >= 0 && s.session.Begun > 0 {
		status.StartSkew = new(v1alpha1.MicrosecondsOf(s.session.Skew))
		status.ClockUncertainty = new(v1alpha1.MicrosecondsOf(s.session.SkewUncertainty))
	}
}

// setTarget says where the load goes and what answered there.
func (s *scope) setTarget() {
	addresses := slices.Compact(slices.Sorted(slices.Values(s.plan.Target.Addresses)))
	target := &v1alpha1.TargetStatus{Addresses: addresses[:min(len(addresses), 64)], Topology: v1alpha1.TopologyStandalone}
	if named := s.plan.Target.Topology; named != "" && named != plan.TopologyAuto {
		target.Topology = v1alpha1.Topology(named)
	}
	for _, p := range s.session.Pods {
		if p.Server != nil && target.Server == "" {
			target.Server, target.Version = p.Server.Name, p.Server.Version
		}
		if p.Layout != nil && target.Primaries == nil {
			target.Topology = v1alpha1.Topology(p.Layout.Topology)
			target.Primaries, target.Replicas = unique(p.Layout.Primaries), unique(p.Layout.Replicas)
		}
	}
	s.test.Status.Target = target
}

// unique drops what stands twice and keeps the order: the lists of a status are sets.
func unique(servers []string) []string {
	var once []string
	for _, s := range servers {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// forget takes everything of a run out of the status.
func (s *scope) forget() {
	conditions := s.test.Status.Conditions
	s.test.Status = v1alpha1.RedisLoadTestStatus{Conditions: conditions, ObservedGeneration: s.test.Generation}
}

// setResults says where the record lies, as it was stored.
func (s *scope) setResults(ctx context.Context, store resultsStore) error {
	data, err := store.Load(ctx)
	if err != nil || len(data) == 0 {
		return err
	}
	series, err := record.DecodeSeries(data)
	if err != nil {
		return nil //nolint:nilerr // what is there cannot be read, now or later: then there are no results to name
	}
	s.test.Status.Results = &v1alpha1.ResultsReference{
		ConfigMap: children.ResultsName(s.test.Name), Interval: v1alpha1.MicrosecondsOf(series.Step), Note: state.Truncate(strings.Join(series.Notes, " "), 1024),
	}
	return nil
}

// judge sets the verdict.
func (s *scope) judge(reason string) {
	status := &s.test.Status
	missed := ""
	if f := status.Search; f != nil && f.Done && f.Rate == 0 {
		missed = f.Message
	}
	r := s.result
	if r == nil {
		r = &result.Load{}
	}
	r.Doubts = s.doubts(reason)
	if v := status.Verification; v != nil {
		r.Verification = verificationOf(v)
	}
	judgement := verdict.Load(s.test.Spec.Objectives, r, missed)
	status.Verdict, status.Objectives = judgement.Verdict, judgement.Objectives
	state.SetObjectivesMet(&status.Conditions, s.test.Generation, judgement)
}

// measuredFrom is the end of ramp-up and warm-up; 0 where there is no plan.
func (s *scope) measuredFrom() time.Duration {
	if s.plan == nil {
		return 0
	}
	return s.plan.Shape.MeasuredFrom()
}

// doubts are reasons not to trust the run as a whole.
func (s *scope) doubts(reason string) []impact.Doubt {
	var doubts []impact.Doubt
	add := func(reason, format string, args ...any) {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if reason == v1alpha1.ReasonAborted {
		add(v1alpha1.ReasonAborted, "the load was aborted")
	}
	if len(s.lost) > 0 {
		add(v1alpha1.ReasonPodsLost, "%d of %d load pods were lost: %s", len(s.lost), s.seen.PodsWanted, strings.Join(s.seen.PodsLost, "; "))
	}
	// All pods record on one grid: a late beginner does harm only where the others were measured already.
	if limit := max(state.MaxSkew, s.measuredFrom()); s.session.Skew > limit {
		add("StartSkew", "the load pods began %s apart (limit %s)", format.Duration(s.session.Skew), format.Duration(limit))
	}
	if s.session.SkewUncertainty > state.MaxSkew {
		add("ClockUncertainty", "the load pods' clocks are known to %s only (limit %s)", format.Duration(s.session.SkewUncertainty), format.Duration(state.MaxSkew))
	}
	doubts = append(doubts, state.ClockDoubts(s.session.ClockShift)...)
	if s.result != nil && s.result.Bottleneck != nil && s.result.Bottleneck.Component == string(bottleneck.LoadGenerator) {
		add("LoadGeneratorSaturated", "the load generator was the bottleneck: %s", s.result.Bottleneck.Evidence)
	}
	if f := s.searching; f != nil && !f.next.Done {
		add("SearchUnfinished", "the search did not come to its end: %s", f.message())
	}
	for _, hole := range s.holes {
		add("IntervalsMissing", "%s", hole)
	}
	return doubts
}

func (s *scope) setConditions(d lifecycle.Decision[lifecycle.LoadTestAction], o outcome) {
	status, generation := &s.test.Status, s.test.Generation
	reason, message := d.Reason, d.Message
	if o.err != nil {
		message = o.err.Error()
	}
	if o.problem != nil {
		reason, message = o.problem.Reason, o.problem.Message
	}
	if o.ended && !o.failed {
		message = s.plain(d.Message)
	}
	state.SetSummary(&status.Conditions, generation, state.Summary{
		Complete: o.ended && !o.failed, Failed: o.ended && o.failed,
		Suspended: d.Action == lifecycle.LoadTestSuspend && o.err == nil || d.Action == lifecycle.LoadTestWait && reason == v1alpha1.ReasonSuspended,
		Reason:    reason, Message: cmp.Or(message, "the load test has ended"),
	})
	s.setAccepted(reason)
	s.setLoadReady(reason, message)
	if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet) == nil || !o.ended || o.failed {
		state.SetCondition(&status.Conditions, generation, v1alpha1.ConditionObjectivesMet, metav1.ConditionUnknown, reason, "judged when the test is complete")
	}
}

func (s *scope) setAccepted(reason string) {
	conditions, generation := &s.test.Status.Conditions, s.test.Generation
	switch {
	case s.seen.Problem != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, s.seen.Problem.Reason, s.seen.Problem.Message)
	case s.plan != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Accepted", "the target and its Secrets are there")
	default:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionUnknown, reason, "not looked at yet")
	}
}

func (s *scope) setLoadReady(reason, message string) {
	ready := !s.seen.StartedAt.IsZero() || (s.seen.PodsWanted > 0 && s.seen.PodsReady == s.seen.PodsWanted)
	if ready {
		message = fmt.Sprintf("all %d load pods were connected to Redis", s.seen.PodsWanted)
	}
	state.SetCondition(&s.test.Status.Conditions, s.test.Generation, v1alpha1.ConditionLoadReady, state.ConditionStatus(ready), reason, message)
}

// plain says in one sentence how the test went.
func (s *scope) plain(why string) string {
	status := &s.test.Status
	if status.Summary == nil || status.Display == nil {
		return why
	}
	text := fmt.Sprintf("%d requests at %s/s, %d errors", status.Summary.Requests, status.Display.TPS, status.Summary.Errors)
	if status.Display.P99 != "" {
		text += ", p99 " + status.Display.P99
	}
	if status.Search != nil && status.Search.Message != "" {
		text = status.Search.Message + "; " + text
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet); c != nil && status.Verdict != "" {
		text += fmt.Sprintf("; %s: %s", status.Verdict, c.Message)
	}
	if why != "" {
		text = why + "; " + text
	}
	return text
}

// tell turns what was just stored into events.
func (r *Reconciler) tell(s *scope) {
	c := state.NewSummary(s.before.Status.Conditions, s.test.Status.Conditions)
	if c == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if meta.IsStatusConditionTrue(s.test.Status.Conditions, v1alpha1.ConditionFailed) || s.seen.Problem != nil {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(s.test, nil, kind, c.Reason, "Reconcile", "%s", state.Truncate(c.Message, 1000))
}
