package experiment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
)

// shown is how many runs and changes of a history a status has.
const shown = 100

// reportSchedule writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) reportSchedule(ctx context.Context, s *scheduled, d lifecycle.ScheduleDecision, o outcome) error {
	if s.seen.Finished || s.seen.Deleting {
		return nil
	}
	status := &s.experiment.Status
	status.ObservedGeneration = s.experiment.Generation
	if status.Schedule == nil {
		status.Schedule = &v1alpha1.ExperimentSchedule{}
	}
	served := o.err == nil && o.problem == nil
	if served {
		s.setTimes(d)
	}
	if s.history != nil && (served || d.Action != lifecycle.ScheduleRecord) { // what could not be stored is not shown
		s.setHistory()
	}
	if o.ended {
		status.CompletionTime = new(metav1.NewMicroTime(r.Clock.Now()))
	}
	s.setDisplay(d)
	s.setConditions(d, o)
	if equality.Semantic.DeepEqual(s.before.Status, *status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.experiment.DeepCopy(), state.OptimisticPatch(s.before)); err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	r.emitScheduleEvents(s, d, served)
	return nil
}

// setTimes stores which scheduled times are served.
func (s *scheduled) setTimes(d lifecycle.ScheduleDecision) {
	of := s.experiment.Status.Schedule
	if !d.At.IsZero() {
		of.LastScheduleTime = new(metav1.NewTime(d.At))
	}
	of.NextScheduleTime = nil
	if !d.Next.IsZero() {
		of.NextScheduleTime = new(metav1.NewTime(d.Next))
	}
	of.Skipped += int64(d.Skipped)
	if d.Action != lifecycle.ScheduleCreate && d.Action != lifecycle.ScheduleConfirm {
		of.Active = ""
		if n := len(s.seen.Active); n > 0 {
			of.Active = s.seen.Active[n-1]
		}
	}
}

// setHistory shows the end of the history.
func (s *scheduled) setHistory() {
	status, h := &s.experiment.Status, s.history
	of := status.Schedule
	of.History, of.Changes = nil, nil
	for i := max(0, len(h.Runs)-shown); i < len(h.Runs); i++ {
		run := &h.Runs[i]
		of.History = append(of.History, v1alpha1.ScheduledRun{
			Name: run.Name, StartTime: seconds(run.Start), Verdict: run.Verdict, Confirms: run.Confirms, Regressed: int32(len(run.Regressed)), Message: run.Message,
		})
		if run.Complete && run.Verdict != v1alpha1.VerdictFail {
			of.LastSuccessfulTime = seconds(run.End)
		}
		status.Verdict, status.Results = run.Verdict, children.ExperimentRecordName(s.experiment.Name)
	}
	is, reason, message := regressedSince(h)
	state.SetCondition(&status.Conditions, s.experiment.Generation, v1alpha1.ConditionRegressed, is, reason, message)
	for _, c := range h.Changes[max(0, len(h.Changes)-shown):] {
		of.Changes = append(of.Changes, v1alpha1.FigureChange{Cell: c.Cell, Figure: c.Figure, Since: c.Since, Found: c.Found, Change: v1alpha1.DecimalOf(c.Change), Worse: c.Worse})
	}
}

// seconds is a time as a status holds it.
func seconds(t time.Time) *metav1.Time { return new(metav1.NewTime(t.Truncate(time.Second))) }

func (s *scheduled) setDisplay(d lifecycle.ScheduleDecision) {
	display := &v1alpha1.ExperimentDisplay{}
	if s.plan != nil {
		display.Cells = fmt.Sprint(len(s.plan.Variants))
	}
	if next := s.experiment.Status.Schedule.NextScheduleTime; next != nil && s.seen.Times != nil && d.Reason != v1alpha1.ReasonSuspended {
		display.Next = next.In(s.seen.Times.Zone()).Format("2006-01-02T15:04Z07:00")
	}
	s.experiment.Status.Display = display
}

func (s *scheduled) setConditions(d lifecycle.ScheduleDecision, o outcome) {
	conditions, generation := &s.experiment.Status.Conditions, s.experiment.Generation
	at := state.Summary{Complete: o.ended && !o.failed, Failed: o.ended && o.failed, Suspended: d.Reason == v1alpha1.ReasonSuspended, Reason: d.Reason, Message: d.Message}
	if o.err != nil {
		at.Message = o.err.Error()
	}
	if o.problem != nil {
		at.Reason, at.Message = o.problem.Reason, o.problem.Message
	}
	at.Idle = at.Reason == v1alpha1.ReasonScheduled
	state.SetSummary(conditions, generation, at)
	trouble := s.seen.Problem
	if o.problem != nil {
		trouble = o.problem
	}
	if trouble != nil {
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, trouble.Reason, trouble.Message)
	} else {
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, "Accepted", "the schedule and the matrix are valid; each run checks what its cells will create")
	}
}

// regressedSince is which figures of a schedule are worse than they were.
func regressedSince(h *experiment.History) (is metav1.ConditionStatus, reason, message string) {
	var worse []string
	called := v1alpha1.ReasonUnconfirmed
	for _, r := range h.Regressions {
		text := fmt.Sprintf("%s since %s: %s", r.Cell, r.Since, r.Message)
		if r.Unconfirmed == "" {
			called = v1alpha1.ReasonRegressed
		} else {
			text += " (not confirmed: " + r.Unconfirmed + ")"
		}
		worse = append(worse, text)
	}
	complete := 0
	for i := range h.Runs {
		if last := h.Runs[len(h.Runs)-1].Template; h.Runs[i].Complete && h.Runs[i].Template == last {
			complete++
		}
	}
	switch c := h.Confirming; {
	case len(worse) > 0:
		return metav1.ConditionTrue, called, first(worse)
	case c != nil:
		return metav1.ConditionUnknown, v1alpha1.ReasonConfirming, confirming(c)
	case complete < 2:
		return metav1.ConditionUnknown, v1alpha1.ReasonNotCompared, "fewer than two runs of the same cells and template are complete"
	}
	return metav1.ConditionFalse, v1alpha1.ReasonNotRegressed, fmt.Sprintf("no figure has become worse over %d runs", complete)
}

// confirming says which run is repeated, and why that was not enough.
func confirming(c *experiment.Confirming) string {
	message := fmt.Sprintf("%s shows a regression, and is repeated: %s: %s", c.Run, c.Regressed[0].Cell, c.Regressed[0].Message)
	if c.Attempts > 0 {
		message += fmt.Sprintf(" (repetitions that could not tell: %d, the last one %s)", c.Attempts, c.Why)
	}
	return message
}

// emitScheduleEvents emits an event if the condition Complete has changed, for scheduled times without a run, and for what has regressed.
func (r *Reconciler) emitScheduleEvents(s *scheduled, d lifecycle.ScheduleDecision, served bool) {
	event := func(kind, reason, message string) {
		r.Recorder.Eventf(s.experiment, nil, kind, reason, "Reconcile", "%s", digest.Truncate(message, 1000))
	}
	if served && d.Why != "" {
		event(corev1.EventTypeWarning, v1alpha1.EventRunSkipped, d.Why)
	}
	r.emitRegressed(s.before, s.experiment)
	if c := state.NewSummary(s.before.Status.Conditions, s.experiment.Status.Conditions); c != nil {
		kind := corev1.EventTypeNormal
		if s.seen.Problem != nil || !served {
			kind = corev1.EventTypeWarning
		}
		event(kind, c.Reason, c.Message)
	}
}
