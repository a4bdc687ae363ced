package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/result"
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
		Kind: report.Experiment, Namespace: o.Namespace, Name: o.Name, Redquake: version.Version, Planned: e.Plan.Runs(), Repeat: e.Plan.Repeat, Order: o.Spec.Order, Seed: o.Status.Seed,
		Table: e.Plan.Outcome(o, e.Record, require), Done: doneBy(&o.Spec), Spec: specOf("RedisExperiment", &o.ObjectMeta, &o.Spec), Window: WindowOf(e.Record),
		Asked: Asked{
			Question: e.Plan.Question(&o.Spec.Compare), Require: cmp.Or(require, o.Spec.Compare.Require), Gate: o.Spec.Objectives != nil && o.Spec.Objectives.NoRegression,
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
	case meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionFailed), complete != nil && complete.Reason == v1alpha1.ReasonAborted && complete.Status == metav1.ConditionTrue:
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
			Number: i + 1, Cell: of.Cell, Round: of.Round, Name: of.LoadTest, Start: of.Start, End: of.End, Missed: of.Missed, Failed: of.Failed, Inconclusive: of.Inconclusive,
			Server: of.Server, Values: of.Values, Detail: details[of.LoadTest],
		})
	}
}

// setEarlier takes over what the status says of the earlier run.
func (s *Study) setEarlier(o *v1alpha1.RedisExperiment) {
	regressed := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionRegressed)
	if o.Spec.CompareTo == nil || regressed == nil {
		return
	}
	s.Earlier = &Earlier{Run: o.Spec.CompareTo.Run, Regressed: string(regressed.Status), Reason: regressed.Reason, Message: regressed.Message}
	if e := o.Status.Earlier; e != nil {
		s.Earlier.Run, s.Earlier.Notes = e.Run, e.Notes
		for i := range e.Comparison {
			s.Earlier.Rows = append(s.Earlier.Rows, ofStatus(&e.Comparison[i], e.Run, s.Question))
		}
	}
}

// ofStatus is a comparison of a status, which has the interval on which the verdict rests alone.
func ofStatus(c *v1alpha1.ComparisonResult, run string, q experiment.Question) result.Comparison {
	f := compare.FigureNamed(c.Figure)
	if m, ok := q.Margins[c.Figure]; ok {
		f.Margin = m
	}
	r := result.Comparison{
		Cell: c.Cell, Baseline: run, Figure: c.Figure, Unit: experiment.UnitOf(f), Primary: true, Verdict: string(c.Verdict), Reason: c.Reason, Message: c.Message, Repeats: int(c.Repeats),
		BaselineRepeats: int(c.BaselineRepeats), Median: decimal(c.Median), BaselineMedian: decimal(c.BaselineMedian), Change: decimal(c.Change), AtLeast: decimal(c.AtLeast),
		AtMost: decimal(c.AtMost), Needs: int(c.Needs),
	}
	if confidence := decimal(c.Confidence); confidence != nil {
		r.Confidence = *confidence
	}
	if r.BaselineMedian != nil {
		r.Margin = f.MarginAt(*r.BaselineMedian)
	}
	return r
}

func decimal(d v1alpha1.Decimal) *float64 {
	x, err := strconv.ParseFloat(string(d), 64)
	if err != nil { // absent
		return nil
	}
	return &x
}

// doneBy is the load and the faults of each run.
func doneBy(spec *v1alpha1.RedisExperimentSpec) report.Prose {
	var parts []string
	load := &spec.Template.Spec.Load
	varies := func(path string) bool {
		return slices.ContainsFunc(spec.Matrix, func(p v1alpha1.ExperimentParameter) bool { return p.Path == path || p.Path == "load" })
	}
	switch {
	case varies("load.rate"):
	case load.Rate != nil:
		parts = append(parts, report.Rate(float64(*load.Rate)))
	case load.Search != nil:
		parts = append(parts, "a search of the greatest rate")
	case load.Users != nil && !varies("load.users"):
		parts = append(parts, plural(int(*load.Users), "user"))
	}
	if load.Duration != nil && !varies("load.duration") {
		parts = append(parts, report.Duration(load.Duration.Duration))
	}
	var faults []string
	for i := range spec.Faults {
		faults = append(faults, fmt.Sprintf("%s (%s)", spec.Faults[i].Name, spec.Faults[i].Spec.Action.Type))
	}
	if len(faults) > 0 {
		parts = append(parts, "in each run "+list(faults))
	}
	return report.Text(strings.Join(parts, ", "))
}

// specOf is the specification of an object of a kind.
func specOf(kind string, o *metav1.ObjectMeta, spec any) string {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]string{"name": o.Name, "namespace": o.Namespace}, "spec": spec,
	})
	if err != nil { // a decoded object can be encoded
		return ""
	}
	return string(text)
}

// DetailOf is what the objects of a run, its record and the results kept beside it have beyond the figures; series is nil if the record is gone.
func DetailOf(w Window, test *v1alpha1.RedisLoadTest, faults []v1alpha1.RedisFault, kept []result.Fault, series *record.Series) *Detail {
	d := &Detail{Use: useOf(&test.Status)}
	if v := test.Status.Verification; v != nil {
		d.ReadBack = v.Acknowledged
	}
	first := firstFault(faults)
	if first != nil {
		d.setFault(digest.ResultOf(kept, first, first.Status.InjectedAt.Time))
	}
	if series == nil || w.Fault && first == nil {
		return d
	}
	zero := time.Duration(0)
	if w.Fault {
		zero = first.Status.InjectedAt.Sub(series.Start)
	}
	columns := curve.Of(series, mostSteps)
	d.Curve = NewCurve(w, columns.Step, columns.OK, zero)
	return d
}

func (d *Detail) setFault(f *result.Fault) {
	d.Phases = f.Phases
	if f.TimeToImpact != nil {
		d.Begins = new(time.Duration(f.TimeToImpact.Value))
	}
}

// mostSteps bounds the columns of a run: two hours of 100 ms.
const mostSteps = 72000

// firstFault is the one that was injected first, without settings.
func firstFault(faults []v1alpha1.RedisFault) (first *v1alpha1.RedisFault) {
	for i := range faults {
		f := &faults[i]
		if f.Spec.Setting || f.Status.InjectedAt == nil {
			continue
		}
		if first == nil || f.Status.InjectedAt.Before(first.Status.InjectedAt) {
			first = f
		}
	}
	return first
}

// Runs is a comparison of runs: each argument of a command is a cell, the first one is the baseline.
func Runs(cells []experiment.Cell, table *result.Comparisons, require v1alpha1.ComparisonRequirement) *Study {
	s := &Study{Kind: report.Comparison, Redquake: version.Version, State: report.Complete, Table: table, Asked: Asked{Require: require}}
	var names []string
	for i, c := range cells {
		names = append(names, c.Name)
		s.Cells = append(s.Cells, Cell{Name: c.Name})
		for _, run := range c.Runs {
			s.Runs = append(s.Runs, Run{Cell: i, Round: run.Round, Name: run.Source, Start: run.Start, Inconclusive: run.Inconclusive, Values: run.Values})
		}
	}
	s.Name = strings.Join(names, ", ")
	if len(names) > mostNamed {
		s.Name = fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	s.number()
	s.Verdict, s.Reason = s.required()
	return s
}

// number puts the runs into the order in which they began, and counts them.
func (s *Study) number() {
	slices.SortStableFunc(s.Runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
	for i := range s.Runs {
		s.Runs[i].Number = i + 1
	}
	s.Planned = len(s.Runs)
}

// required is the verdict by what a comparison must show; none if nothing is required.
func (s *Study) required() (report.Verdict, string) {
	if s.Require == "" || s.Require == v1alpha1.RequireNone || s.provisional() {
		return "", ""
	}
	j := experiment.Judge(&experiment.Record{}, primaryRows(s.Table), s.Require, nil, false)
	return report.Verdict(j.Verdict), j.Message
}

func primaryRows(t *result.Comparisons) []result.Comparison {
	return slices.DeleteFunc(slices.Clone(t.Comparisons), func(c result.Comparison) bool { return !c.Primary })
}

// earlierParameter is what an experiment and an earlier one differ in.
const earlierParameter = "experiment"

// Two is an experiment against an earlier one: each cell against itself. then and now are their names.
func Two(earlier, later *Experiment, then, now string, table *result.Comparisons, require v1alpha1.ComparisonRequirement) *Study {
	s := &Study{
		Kind: report.Comparison, Namespace: later.Object.Namespace, Name: now + " against " + then, Redquake: version.Version, State: report.Complete,
		Asked: Asked{Question: later.Plan.Question(&later.Object.Spec.Compare), Require: require}, Done: doneBy(&later.Object.Spec),
		Spec: specOf("RedisExperiment", &later.Object.ObjectMeta, &later.Object.Spec), Repeat: later.Plan.Repeat, Window: WindowOf(later.Record),
	}
	if table.Experiment != nil { // it is not complete
		s.State, s.Reason = report.Running, table.Experiment.Message
	}
	s.setCells(later.Plan, &later.Object.Spec)
	s.Parameters = append([]string{earlierParameter}, s.Parameters...)
	s.Fixed = map[string]bool{earlierParameter: true}
	s.both(earlier, later, then, now, table)
	s.number()
	s.Planned = later.Plan.Runs() + len(earlier.Record.Runs)
	if s.Verdict, _ = s.required(); s.State == report.Complete {
		_, s.Reason = s.required()
	}
	return s
}

// both makes two cells of each that both have: one of the earlier experiment, which is its baseline.
func (s *Study) both(earlier, later *Experiment, then, now string, table *result.Comparisons) {
	own := s.Cells
	s.Cells = nil
	for i, c := range own {
		before := slices.Index(earlier.Record.Cells, c.Name)
		if before < 0 {
			continue
		}
		at := len(s.Cells)
		s.Cells = append(s.Cells,
			Cell{Name: earlierParameter + "=" + then + "," + c.Name, Values: append([]string{then}, c.Values...), Baseline: at},
			Cell{Name: c.Name, Values: append([]string{now}, c.Values...), Baseline: at})
		s.addRuns(earlier, before, at)
		s.addRuns(later, i, at+1)
	}
	s.Table = table
}

func (s *Study) addRuns(of *Experiment, cell, as int) {
	var one Study
	one.setRuns(of.Record, of.Details)
	for _, run := range one.Runs {
		if run.Cell == cell {
			run.Cell = as
			s.Runs = append(s.Runs, run)
		}
	}
}
