package redisexperiment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/lifecycle"
)

// report writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.ExperimentAction], o state.Outcome,
) error {
	if s.seen.Finished || s.seen.Deleting {
		return nil
	}
	status := &s.experiment.Status
	status.ObservedGeneration = s.experiment.Generation
	now := r.Clock.Now()
	if s.plan != nil {
		s.setProgress(now)
		if s.record != nil && (d.Action == lifecycle.ExperimentCollect && o.Err == nil || o.Ended) {
			s.setComparison(o.Ended && !o.Failed && d.Reason != v1alpha1.ReasonAborted)
		}
	}
	if o.Ended {
		status.CompletionTime, status.ExpectedEnd = new(metav1.NewMicroTime(now)), nil
		s.judge(d, o)
	}
	s.setDisplay()
	s.setConditions(d, o)
	if equality.Semantic.DeepEqual(s.before.Status, *status) {
		return nil
	}
	err := state.PatchStatus(ctx, r.Client, s.experiment, s.before)
	if err != nil {
		return err
	}
	r.emitEvents(s)
	return nil
}

// setProgress counts the runs, and extrapolates when the last one ends.
func (s *scope) setProgress(now time.Time) {
	status := &s.experiment.Status
	if s.record == nil && status.Progress != nil { // it cannot be read: what was counted stays
		return
	}
	status.Progress = &v1alpha1.ExperimentProgress{Runs: int32(s.seen.Total)}
	status.Warnings = s.plan.Warnings(s.plan.Question(&s.experiment.Spec.Compare))
	if s.record == nil {
		return
	}
	var took time.Duration
	for i := range s.record.Runs {
		run := &s.record.Runs[i]
		if run.Failed != "" {
			status.Progress.Failed++
		}
		if run.Inconclusive != "" {
			status.Progress.Inconclusive++
		}
		took += run.End.Sub(run.Start)
	}
	n := len(s.record.Runs)
	status.Progress.Finished = int32(n)
	status.Cells = s.record.Counts(s.plan.BaselineOf)
	if n > 0 && n < s.seen.Total && status.StartTime != nil {
		// From the start, with what passes between runs; a run under way counts as if it had just begun.
		each := max(now.Sub(status.StartTime.Time), took) / time.Duration(n)
		end := metav1.NewTime(now.Add(time.Duration(s.seen.Total-n) * each).Truncate(time.Second))
		old := status.ExpectedEnd
		if old == nil || s.before.Status.Progress == nil ||
			s.before.Status.Progress.Finished != status.Progress.Finished {
			status.ExpectedEnd = &end
		}
	}
}

func (s *scope) setDisplay() {
	status := &s.experiment.Status
	d := &v1alpha1.ExperimentDisplay{}
	if p := status.Progress; p != nil {
		d.Progress = fmt.Sprintf("%d/%d", p.Finished, p.Runs)
	}
	if s.plan != nil {
		d.Cells = fmt.Sprint(len(s.plan.Variants))
	}
	worse, judged := 0, 0
	for _, c := range status.Comparison {
		if c.Verdict != "" {
			judged++
		}
		if c.Verdict == v1alpha1.ComparisonWorse {
			worse++
		}
	}
	if judged > 0 {
		d.Worse = fmt.Sprintf("%d/%d", worse, judged)
	}
	if status.Run != nil {
		d.Next = digest.Truncate(status.Run.Cell, 32)
	}
	status.Display = d
}

// emitEvents emits an event if the condition Complete has changed.
func (r *Reconciler) emitEvents(s *scope) {
	if children.ScheduleOf(s.experiment) == nil { // whose event is the schedule's
		r.emitRegressed(s.before, s.experiment)
	}
	c := state.Changed(s.before.Status.Conditions, s.experiment.Status.Conditions,
		v1alpha1.ConditionComplete)
	if c == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if meta.IsStatusConditionTrue(s.experiment.Status.Conditions, v1alpha1.ConditionFailed) ||
		s.seen.Problem != nil {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(s.experiment, nil, kind, c.Reason, "Reconcile", "%s",
		digest.Truncate(c.Message, 1000))
}
