package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/specification"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result/comparisons"
	"github.com/redquake/redquake/internal/version"
)

// Experiment is what is known of an experiment that is no schedule.
type Experiment struct {
	Object  *v1alpha1.RedisExperiment
	Plan    *experiment.Plan
	Record  *experiment.Record
	Details map[string]*Detail // by load test; those that are missing are gone
}

// Study is the study of the experiment; require replaces spec.compare.require, "" = it is that.
func (e *Experiment) Study(require v1alpha1.ComparisonRequirement) *Study {
	o := e.Object
	s := &Study{
		Kind:      report.Experiment,
		Namespace: o.Namespace,
		Name:      o.Name,
		Redquake:  version.Version,
		Planned:   e.Plan.Runs(),
		Repeat:    e.Plan.Repeat,
		Order:     o.Spec.Order,
		Seed:      o.Status.Seed,
		Table:     e.Plan.Outcome(o, e.Record, require),
		Done:      Done(&o.Spec),
		Spec:      specification.Of("RedisExperiment", &o.ObjectMeta, &o.Spec),
		Window:    WindowOf(e.Record),
		Asked: Asked{
			Question: e.Plan.Question(&o.Spec.Compare),
			Require:  cmp.Or(require, o.Spec.Compare.Require),
			Gate:     o.Spec.Objectives != nil && o.Spec.Objectives.NoRegression,
		},
	}
	s.setState(o)
	s.setCells(e.Plan, &o.Spec)
	s.setRuns(e.Record, e.Details)
	s.setEarlier(o)
	for i := range o.Spec.Faults {
		s.Faults = append(s.Faults, string(o.Spec.Faults[i].Spec.Action.Type))
	}
	s.Faults = slices.Compact(slices.Sorted(slices.Values(s.Faults)))
	return s
}

// setState takes over how far the experiment has come.
func (s *Study) setState(o *v1alpha1.RedisExperiment) {
	outcome := s.Table.Experiment
	s.Verdict, s.Reason = report.Verdict(outcome.Verdict), outcome.Message
	complete := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionComplete)
	switch {
	case meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionFailed),
		complete != nil && complete.Reason == v1alpha1.ReasonAborted &&
			complete.Status == metav1.ConditionTrue:
		s.State = report.Failed
	case complete == nil, outcome.Finished == 0:
		s.State = report.Pending
	case complete.Status != metav1.ConditionTrue || outcome.Finished < outcome.Runs:
		s.State = report.Running
	default:
		s.State = report.Complete
	}
}

func (s *Study) setCells(p *experiment.Plan, spec *v1alpha1.RedisExperimentSpec) {
	s.Fixed = map[string]bool{}
	for i := range spec.Matrix {
		s.Parameters = append(s.Parameters, spec.Matrix[i].Name)
		_, named := spec.Baseline[spec.Matrix[i].Name]
		s.Fixed[spec.Matrix[i].Name] = named || len(spec.Baseline) == 0 && i == 0
	}
	for _, v := range p.Variants {
		c := Cell{Name: v.Name, Baseline: v.Baseline}
		for _, name := range s.Parameters {
			c.Values = append(c.Values, v.Values[name])
		}
		s.Cells = append(s.Cells, c)
	}
}

func (s *Study) setRuns(r *experiment.Record, details map[string]*Detail) {
	for i := range r.Runs {
		of := &r.Runs[i]
		s.Runs = append(s.Runs, Run{
			Number:       i + 1,
			Cell:         of.Cell,
			Round:        of.Round,
			Name:         of.LoadTest,
			Start:        of.Start,
			End:          of.End,
			Missed:       of.Missed,
			Failed:       of.Failed,
			Inconclusive: of.Inconclusive,
			Server:       of.Server,
			Values:       of.Values,
			Detail:       details[of.LoadTest],
		})
	}
}

// setEarlier takes over what the status says of the earlier run.
func (s *Study) setEarlier(o *v1alpha1.RedisExperiment) {
	regressed := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionRegressed)
	if o.Spec.CompareTo == nil || regressed == nil {
		return
	}
	s.Earlier = &Earlier{
		Run:       o.Spec.CompareTo.Run,
		Regressed: string(regressed.Status),
		Reason:    regressed.Reason,
		Message:   regressed.Message,
	}
	if e := o.Status.Earlier; e != nil {
		s.Earlier.Run, s.Earlier.Notes = e.Run, e.Notes
		for i := range e.Comparison {
			s.Earlier.Rows = append(s.Earlier.Rows, ofStatus(&e.Comparison[i], e.Run, s.Question))
		}
	}
}

// ofStatus is a comparison of a status, which has the interval on which the verdict rests alone.
func ofStatus(
	c *v1alpha1.ComparisonResult, run string, q experiment.Question,
) comparisons.Comparison {
	f := compare.FigureNamed(c.Figure)
	if m, ok := q.Margins[c.Figure]; ok {
		f.Margin = m
	}
	r := comparisons.Comparison{
		Cell:            c.Cell,
		Baseline:        run,
		Figure:          c.Figure,
		Unit:            experiment.UnitOf(f),
		Primary:         true,
		Verdict:         string(c.Verdict),
		Reason:          c.Reason,
		Message:         c.Message,
		Repeats:         int(c.Repeats),
		BaselineRepeats: int(c.BaselineRepeats),
		Median:          digest.Number(c.Median),
		BaselineMedian:  digest.Number(c.BaselineMedian),
		Change:          digest.Number(c.Change),
		AtLeast:         digest.Number(c.AtLeast),
		AtMost:          digest.Number(c.AtMost),
		Needs:           int(c.Needs),
	}
	r.Confidence, _ = c.Confidence.Number()
	if r.BaselineMedian != nil {
		r.Margin = f.MarginAt(*r.BaselineMedian)
	}
	return r
}

// Done is the load and the faults of each run.
func Done(spec *v1alpha1.RedisExperimentSpec) report.Prose {
	var parts []string
	load := &spec.Template.Spec.Load
	varies := func(path string) bool {
		return slices.ContainsFunc(spec.Matrix, func(p v1alpha1.ExperimentParameter) bool {
			return p.Path == path || p.Path == "load"
		})
	}
	switch {
	case varies("load.rate"):
	case load.Rate != nil:
		parts = append(parts, report.Rate(load.PerSecond(*load.Rate)))
	case load.Search != nil:
		parts = append(parts, "a search of the greatest rate")
	case load.Users != nil && !varies("load.users"):
		parts = append(parts, wording.Plural(int(*load.Users), "user"))
	}
	if load.Duration != nil && !varies("load.duration") {
		parts = append(parts, report.Duration(load.Duration.Duration))
	}
	var faults []string
	for i := range spec.Faults {
		faults = append(faults, fmt.Sprintf("%s (%s)", spec.Faults[i].Name,
			spec.Faults[i].Spec.Action.Type))
	}
	if len(faults) > 0 {
		parts = append(parts, "in each run "+wording.List(faults))
	}
	return report.Text(strings.Join(parts, ", "))
}
