package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// shown is how many runs and changes of a history a status has.
const shown = 100

// report writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, s *scope, d lifecycle.ScheduleDecision, o state.Outcome,
) error {
	if s.seen.Deleting {
		return nil
	}
	status := &s.schedule.Status
	status.ObservedGeneration = s.schedule.Generation
	served := o.Err == nil && o.Problem == nil
	if served {
		s.setTimes(d)
	}
	// what could not be stored is not shown
	if s.history != nil && (served || d.Action != lifecycle.ScheduleRecord) {
		s.setHistory()
	}
	s.setDisplay(s.trouble(o) == nil)
	s.setConditions(d, o)
	if equality.Semantic.DeepEqual(s.before.Status, *status) {
		return nil
	}
	err := state.PatchStatus(ctx, r.Client, s.schedule, s.before)
	if err != nil {
		return err
	}
	r.emitEvents(s, d, served)
	return nil
}

// setTimes stores which scheduled times are served.
func (s *scope) setTimes(d lifecycle.ScheduleDecision) {
	status := &s.schedule.Status
	if !d.At.IsZero() {
		status.LastScheduleTime = new(metav1.NewTime(d.At))
	}
	status.NextScheduleTime = nil
	if !d.Next.IsZero() {
		status.NextScheduleTime = new(metav1.NewTime(d.Next))
	}
	status.Skipped += int64(d.Skipped)
	if d.Action != lifecycle.ScheduleCreate && d.Action != lifecycle.ScheduleConfirm {
		status.Active = ""
		if n := len(s.seen.Active); n > 0 {
			status.Active = s.seen.Active[n-1]
		}
	}
}

// setHistory shows the end of the history.
func (s *scope) setHistory() {
	status, h := &s.schedule.Status, s.history
	status.History = nil
	status.Changes = nil
	status.Verdict = ""
	status.Results = ""
	for i := max(0, len(h.Runs)-shown); i < len(h.Runs); i++ {
		run := &h.Runs[i]
		status.History = append(status.History, v1alpha1.ScheduledRun{
			Name:      run.Name,
			StartTime: seconds(run.Start),
			Verdict:   run.Verdict,
			Confirms:  run.Confirms,
			Regressed: int32(len(run.Regressed)),
			Message:   run.Message,
		})
		if run.Complete && run.Verdict != v1alpha1.VerdictFail {
			status.LastSuccessfulTime = seconds(run.End)
		}
		status.Verdict = run.Verdict
		status.Results = children.HistoryName(s.schedule.Name)
	}
	is, reason, message := regressedSince(h)
	state.SetCondition(&status.Conditions, s.schedule.Generation, v1alpha1.ConditionRegressed, is,
		reason, message)
	for _, c := range h.Changes[max(0, len(h.Changes)-shown):] {
		status.Changes = append(status.Changes, v1alpha1.FigureChange{
			Cell:   c.Cell,
			Figure: c.Figure,
			Since:  c.Since,
			Found:  c.Found,
			Change: v1alpha1.DecimalOf(c.Change),
			Worse:  c.Worse,
		})
	}
}

// seconds is a time as a status holds it.
func seconds(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.Truncate(time.Second)))
}

// setDisplay shows when the last run was due, and when the next one is: none is while the schedule
// is suspended or cannot create runs.
func (s *scope) setDisplay(runs bool) {
	status := &s.schedule.Status
	status.Display = &v1alpha1.ScheduleDisplay{Last: s.display(status.LastScheduleTime)}
	if runs && !s.schedule.Spec.Suspend {
		status.Display.Next = s.display(status.NextScheduleTime)
	}
}

// display is a scheduled time in the time zone of the schedule; "" = there is none.
func (s *scope) display(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.In(crontab.Zone(s.schedule.Spec.TimeZone)).Format(displayed)
}

// displayed is the format of scheduled times in columns.
const displayed = "2006-01-02T15:04Z07:00"

// setConditions says whether runs are created when they are due. With Stalled kstatus reports the
// schedule as failed, with Reconciling as in progress; a run does not change that, as with a
// CronJob.
func (s *scope) setConditions(d lifecycle.ScheduleDecision, o state.Outcome) {
	conditions, generation := &s.schedule.Status.Conditions, s.schedule.Generation
	reason, message, trouble := d.Reason, d.Message, s.trouble(o)
	if trouble != nil {
		reason, message = trouble.Reason, trouble.Message
	}
	set := func(kind string, is bool) {
		text := ""
		if is {
			text = message
		}
		state.SetCondition(conditions, generation, kind, state.ConditionStatus(is), reason, text)
	}
	state.SetCondition(conditions, generation, v1alpha1.ConditionReady,
		state.ConditionStatus(trouble == nil), reason, message)
	set(v1alpha1.ConditionSuspended, s.schedule.Spec.Suspend)
	set(v1alpha1.ConditionReconciling, trouble != nil && !trouble.Lasting)
	set(v1alpha1.ConditionStalled, trouble != nil && trouble.Lasting)
}

// trouble is what keeps runs from being created or recorded; nil = nothing does.
func (s *scope) trouble(o state.Outcome) *problem.Problem {
	switch {
	case o.Problem != nil:
		return o.Problem
	case o.Err != nil:
		return &problem.Problem{Reason: v1alpha1.ReasonRetrying, Message: o.Err.Error()}
	}
	return s.seen.Problem
}

// regressedSince is which figures of a schedule are worse than they were.
func regressedSince(h *history.History) (is metav1.ConditionStatus, reason, message string) {
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
		last := h.Runs[len(h.Runs)-1].Template
		if h.Runs[i].Complete && h.Runs[i].Template == last {
			complete++
		}
	}
	switch c := h.Confirming; {
	case len(worse) > 0:
		return metav1.ConditionTrue, called, digest.List(worse)
	case c != nil:
		return metav1.ConditionUnknown, v1alpha1.ReasonConfirming, confirming(c)
	case complete < 2:
		return metav1.ConditionUnknown, v1alpha1.ReasonNotCompared,
			"fewer than two runs of the same cells and template are complete"
	}
	return metav1.ConditionFalse, v1alpha1.ReasonNotRegressed, fmt.Sprintf(
		"no figure has become worse over %d runs", complete)
}

// confirming says which run is repeated, and why that was not enough.
func confirming(c *history.Confirming) string {
	message := fmt.Sprintf("%s shows a regression, and is repeated: %s: %s", c.Run,
		c.Regressed[0].Cell, c.Regressed[0].Message)
	if c.Attempts > 0 {
		message += fmt.Sprintf(" (repetitions that could not tell: %d, the last one %s)", c.Attempts,
			c.Why)
	}
	return message
}

// emitEvents emits an event if the condition Ready has changed, for scheduled times without a run,
// and for what has regressed.
func (r *Reconciler) emitEvents(s *scope, d lifecycle.ScheduleDecision, served bool) {
	event := func(kind, reason, action, message string) {
		r.Recorder.Eventf(s.schedule, nil, kind, reason, action, "%s", digest.Truncate(message, 1000))
	}
	if served && d.Why != "" {
		event(corev1.EventTypeWarning, v1alpha1.EventRunSkipped, "Reconcile", d.Why)
	}
	for _, message := range s.newlyRegressed() {
		event(corev1.EventTypeWarning, v1alpha1.EventExperimentRegressed, "Compare", message)
	}
	c := state.Changed(s.before.Status.Conditions, s.schedule.Status.Conditions,
		v1alpha1.ConditionReady)
	if c != nil {
		kind := corev1.EventTypeNormal
		if c.Status == metav1.ConditionFalse || !served {
			kind = corev1.EventTypeWarning
		}
		event(kind, c.Reason, "Reconcile", c.Message)
	}
}

// newlyRegressed is what has regressed since the status before.
func (s *scope) newlyRegressed() (messages []string) {
	before, after := &s.before.Status, &s.schedule.Status
	old := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionRegressed)
	now := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionRegressed)
	if now != nil && now.Status == metav1.ConditionTrue &&
		(old == nil || old.Status != now.Status || old.Message != now.Message) {
		messages = append(messages, now.Message)
	}
	for _, c := range after.Changes {
		if c.Worse && !slices.Contains(before.Changes, c) {
			messages = append(messages,
				fmt.Sprintf("%s: the level of %s has changed since %s (by %s, found with %s)", c.Cell, c.Figure,
					c.Since, c.Change, c.Found))
		}
	}
	return messages
}
