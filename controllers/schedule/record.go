package schedule

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/controllers/stored"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/problem"
)

// recordRun adds a run that has ended to the history, once.
func (r *Reconciler) recordRun(ctx context.Context, s *scope, name string) state.Outcome {
	run := s.run(name)
	ended, err := r.ended(ctx, s, run)
	if err != nil {
		return state.Outcome{Err: err}
	}
	s.history.Add(ended)
	err = stored.SaveHistory(ctx, r.Client, s.schedule, s.history, s.names())
	if err != nil {
		return state.Outcome{Err: err}
	}
	r.Metrics.RunRecorded(s.schedule, ended.Verdict)
	log.FromContext(ctx).Info("Recorded a run", "run", name, "verdict", ended.Verdict, "regressed",
		len(ended.Regressed))
	return state.Outcome{Again: true}
}

// ended is what is known of a run that has ended. One that was aborted or has failed has no
// figures.
func (r *Reconciler) ended(
	ctx context.Context, s *scope, run *v1alpha1.RedisExperiment,
) (history.Ended, error) {
	e := history.Ended{Run: history.Run{
		Name:     run.Name,
		Start:    startOf(run),
		End:      r.Clock.Now(),
		Template: experiment.HashOf(&run.Spec),
		Confirms: run.Annotations[v1alpha1.AnnotationConfirms],
		Verdict:  run.Status.Verdict,
		Complete: state.Succeeded(run.Status.Conditions),
	}, Confirm: s.confirms()}
	if at, ok := scheduledAt(run); ok {
		e.Scheduled = at
	}
	if run.Status.CompletionTime != nil {
		e.End = run.Status.CompletionTime.Time
	}
	if to := run.Spec.CompareTo; to != nil {
		e.Against = to.Run
	}
	if !e.Complete {
		e.Message = digest.Truncate(state.EndOf(run.Status.Conditions), 512)
		return e, nil
	}
	found, err := problem.From(r.setFigures(ctx, &e, run))
	switch {
	case err != nil:
		return e, err
	case found != nil: // it says nothing of the level of a figure
		e.Complete, e.Message = false, digest.Truncate(found.Message, 512)
	default:
		e.Regressed, e.Waited, e.Lacks = regressedIn(run), waitedIn(run), lacksIn(run)
		if len(e.Regressed) > 0 {
			e.Message = digest.Truncate(e.Regressed[0].Cell+": "+e.Regressed[0].Message, 512)
		}
	}
	return e, nil
}

// setFigures reads the figures of a run that has succeeded. It is a problem if another version of
// Redquake has planned it, or if its record cannot be used.
func (r *Reconciler) setFigures(
	ctx context.Context, e *history.Ended, run *v1alpha1.RedisExperiment,
) error {
	plan, err := experiment.NewPlan(&run.Spec)
	if err != nil {
		return err
	}
	e.Figures = plan.Question(&run.Spec.Compare).Figures()
	if e.Record, err = stored.Record(ctx, r.Client, run); err == nil && e.Record == nil {
		return &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: "its record, ConfigMap " + children.ExperimentRecordName(run.Name) + ", is missing",
		}
	}
	return err
}

// lacksIn is why a run could not be compared with the earlier one; "" = it was, or there is none.
func lacksIn(run *v1alpha1.RedisExperiment) string {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionRegressed)
	if c != nil && c.Reason == v1alpha1.ReasonNotCompared {
		return digest.Truncate(c.Message, 256)
	}
	return ""
}

// waitedIn are the figures of a run whose comparison with the earlier one is inconclusive, as
// load generators did not run.
func waitedIn(run *v1alpha1.RedisExperiment) []history.RegressedFigure {
	if run.Status.Earlier == nil {
		return nil
	}
	var all []history.RegressedFigure
	for _, c := range run.Status.Earlier.Comparison {
		if c.Reason == string(compare.GeneratorWaited) {
			all = append(all, history.RegressedFigure{Cell: c.Cell, Figure: c.Figure})
		}
	}
	return all
}

// regressedIn are the figures of a run that are worse than in the earlier one.
func regressedIn(run *v1alpha1.RedisExperiment) []history.RegressedFigure {
	if run.Status.Earlier == nil {
		return nil
	}
	var all []history.RegressedFigure
	for _, c := range run.Status.Earlier.Comparison {
		if c.Verdict == v1alpha1.ComparisonRegressed {
			level, _ := c.BaselineMedian.Number()
			all = append(all, history.RegressedFigure{
				Cell:    c.Cell,
				Figure:  c.Figure,
				Level:   level,
				Message: c.Message,
			})
		}
	}
	return all
}
