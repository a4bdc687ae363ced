package redisexperiment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/controllers/stored"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// earlier is the comparison with the run of spec.compareTo.
type earlier struct {
	against experiment.Against
	lacks   string // why there is nothing to compare with; "" = there is
}

// rows are the comparisons; e may be nil.
func (e *earlier) rows() []comparisons.Comparison {
	if e == nil {
		return nil
	}
	return e.against.Rows
}

// findEarlier compares an experiment of which all runs have ended with the one of spec.compareTo.
func (r *Reconciler) findEarlier(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.ExperimentAction],
) error {
	to := s.experiment.Spec.CompareTo
	if to == nil || d.Reason != v1alpha1.ReasonSucceeded {
		return nil
	}
	found, lacks, err := r.earlierRun(ctx, s.experiment, to.Run)
	if err != nil {
		return err
	}
	s.earlier = &earlier{lacks: lacks}
	if found == nil {
		return nil
	}
	s.earlier.against = experiment.CompareWith(s.record, experiment.HashOf(&s.experiment.Spec), *found,
		s.plan.Question(&s.experiment.Spec.Compare), s.plan.BaselineOf)
	if len(s.earlier.against.Rows) == 0 {
		s.earlier.lacks = fmt.Sprintf("%s has none of the cells of this experiment", to.Run)
	}
	return nil
}

// earlierRun finds a run with its figures: in the history of the schedule that both are of, or in
// its own record. lacks is why it has none.
func (r *Reconciler) earlierRun(
	ctx context.Context, e *v1alpha1.RedisExperiment, name string,
) (found *experiment.Earlier, lacks string, err error) {
	if of := children.ScheduleOf(e); of != nil {
		schedule := &v1alpha1.RedisExperimentSchedule{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: e.Namespace,
				Name:      of.Name,
				UID:       of.UID,
			},
		}
		h, err := stored.History(ctx, r.Client, schedule)
		unusable, err := problem.From(err)
		if err != nil || unusable != nil {
			return nil, messageOf(unusable), err
		}
		run := h.Find(name)
		if run != nil && run.Complete && run.Record != nil {
			return &experiment.Earlier{
				Name:     name,
				Template: run.Template,
				Record:   run.Record,
			}, "", nil
		}
	}
	other := &v1alpha1.RedisExperiment{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, other)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("there is no RedisExperiment %s", name), nil
	case err != nil:
		return nil, "", fmt.Errorf("read RedisExperiment %s: %w", name, err)
	case !state.IsFinished(other.Status.Conditions):
		return nil, fmt.Sprintf("RedisExperiment %s has not ended", name), nil
	case !state.Succeeded(other.Status.Conditions):
		return nil, fmt.Sprintf(
			"RedisExperiment %s has not run to its end (%s): name one that has succeeded", name,
			state.EndOf(other.Status.Conditions)), nil
	}
	record, err := stored.Record(ctx, r.Client, other)
	if unusable, err := problem.From(err); err != nil || unusable != nil {
		return nil, messageOf(unusable), err
	}
	if record == nil {
		return nil, fmt.Sprintf("RedisExperiment %s has no figures", name), nil
	}
	return &experiment.Earlier{
		Name:     name,
		Template: experiment.HashOf(&other.Spec),
		Record:   record,
	}, "", nil
}

func messageOf(p *problem.Problem) string {
	if p == nil {
		return ""
	}
	return p.Message
}

// setRegressed stores the comparison with the earlier run, and whether something has regressed.
func (s *scope) setRegressed(o state.Outcome, reason string) {
	to := s.experiment.Spec.CompareTo
	if to == nil {
		return
	}
	set := func(is metav1.ConditionStatus, reason, message string) {
		state.SetCondition(&s.experiment.Status.Conditions, s.experiment.Generation,
			v1alpha1.ConditionRegressed, is, reason, message)
	}
	switch e := s.earlier; {
	case !o.Ended:
		set(metav1.ConditionUnknown, reason, "evaluated when the experiment is complete")
	case e == nil:
		set(metav1.ConditionUnknown, v1alpha1.ReasonNotCompared, "the experiment is not complete")
	case e.lacks != "":
		set(metav1.ConditionUnknown, v1alpha1.ReasonNotCompared, e.lacks)
	default:
		s.experiment.Status.Earlier = e.inStatus(to.Run)
		set(e.regressed(to.Run))
	}
}

func (e *earlier) inStatus(run string) *v1alpha1.EarlierComparison {
	of := &v1alpha1.EarlierComparison{Run: run}
	for _, row := range e.against.Rows {
		of.Comparison = append(of.Comparison, inStatus(row, true))
	}
	for _, note := range e.against.Notes[:min(len(e.against.Notes), maxNotes)] {
		of.Notes = append(of.Notes, digest.Truncate(note, 512))
	}
	return of
}

// regressed is whether something has regressed since a run.
func (e *earlier) regressed(run string) (is metav1.ConditionStatus, reason, message string) {
	var worse []string
	for _, row := range e.against.Regressed() {
		worse = append(worse, row.Cell+": "+row.Message)
	}
	all, conclusive := len(e.against.Rows), e.against.Conclusive()
	switch {
	case len(worse) > 0:
		return metav1.ConditionTrue, v1alpha1.ReasonRegressed, fmt.Sprintf(
			"%d of %d comparisons with %s: %s", len(worse), all, run, digest.List(worse))
	case conclusive == 0:
		return metav1.ConditionUnknown, v1alpha1.ReasonInconclusive, fmt.Sprintf("%s: %s",
			e.against.Rows[0].Cell, e.against.Rows[0].Message)
	}
	return metav1.ConditionFalse, v1alpha1.ReasonNotRegressed, fmt.Sprintf(
		"of %d comparisons with %s none shows a regression; %d inconclusive", all, run, all-conclusive)
}

// emitRegressed emits an event for what has regressed since the status before.
func (r *Reconciler) emitRegressed(before, after *v1alpha1.RedisExperiment) {
	old := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionRegressed)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionRegressed)
	if now != nil && now.Status == metav1.ConditionTrue &&
		(old == nil || old.Status != now.Status || old.Message != now.Message) {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventExperimentRegressed,
			"Compare", "%s", digest.Truncate(now.Message, 1000))
	}
}
