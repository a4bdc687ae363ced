// Package run makes the report of a load test and of a fault: from their objects, the record of the
// load, or the result of a load from the command line.
package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/measured"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/version"
)

// Input is what is known of a run. At least one of Test, Load and Series is set, for the report of
// a fault Faults suffices.
type Input struct {
	Name string // what the report is called without Test, such as a file
	// nil: the load did not run in a cluster, or its object was not kept
	Test *v1alpha1.RedisLoadTest
	// the result of the load; nil = it was not kept, or the load still runs: what the status of Test
	// says, or the record shows
	Load   *result.Load
	Faults []v1alpha1.RedisFault // those of other load tests are left out
	// Results are those of the faults on this load, as they were stored beside the record. One that is
	// missing is read from its object.
	Results []result.Fault
	Series  *merged.Series // nil: the record was not kept

	lone []string // names of the faults of which only the result was kept
}

// complete adds the objects of faults of which only the result was kept.
func (in *Input) complete() {
	in.Faults = slices.Clone(in.Faults)
	for i := range in.Results {
		r := &in.Results[i]
		if slices.ContainsFunc(in.Faults, func(f v1alpha1.RedisFault) bool {
			return string(f.UID) == r.UID && f.Name == r.Name
		}) {
			continue
		}
		one := digest.FaultObject(r, in.Name)
		if in.Test != nil {
			one.Namespace, one.Status.LoadTest = in.Test.Namespace, in.Test.Name
		}
		in.Faults, in.lone = append(in.Faults, *one), append(in.lone, r.Name)
	}
}

// LoadTest makes the report of a load with the faults on it.
func LoadTest(in Input) *report.Document {
	in.complete()
	s := newSubject(in)
	d := s.document(report.LoadTest)
	s.loadState(d)
	if s.neverBegan() { // nothing was measured: neither no error nor no outage
		d.Finding, d.Done = s.loadFinding(d), s.loadDone()
		s.more(d, nil)
		return d
	}
	d.Objectives = s.objectives()
	d.Doubts = s.doubts()
	doubted := map[string]bool{}
	for _, f := range s.faults {
		doubted[f.Name] = f.Status.Verdict == v1alpha1.VerdictInconclusive && len(f.doubts("")) > 0
	}
	judgement.Settle(d, doubted)
	d.Figures = s.loadFigures()
	judgement.SetLimits(d)
	d.Finding, d.Done = s.loadFinding(d), s.loadDone()
	d.Timeline = s.timeline()
	s.curves(d, nil)
	s.faultsSection(d)
	for i := range s.faults[:min(len(s.faults), faultsShown)] {
		s.zoom(d, s.faults[i], len(s.faults) > 1)
	}
	s.add(d, events.Timeline(d, s.quiet()), s.errorsSection(), measured.Operations(s.load, s.openLoop),
		measured.Shards(s.load), measured.Search(s.load.Search))
	s.add(d, measured.Servers(s.load, s.lookedTable()), measured.Verification(s.verification()),
		judgement.Objectives(d))
	s.more(d, nil)
	return d
}

// neverBegan reports whether the load has not sent a request, and if it is over never will.
func (s *subject) neverBegan() bool {
	return s.test != nil && s.start.IsZero()
}

// faultsShown is how many faults of a load test are drawn in its report: the others have a report
// of their own.
const faultsShown = 3

// Fault makes the report of one fault.
func Fault(in Input, name string) (*report.Document, error) {
	in.complete()
	i := slices.IndexFunc(in.Faults, func(f v1alpha1.RedisFault) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no RedisFault %s%s", name, named(in.Faults))
	}
	f := &in.Faults[i]
	if in.Test != nil && f.Status.LoadTest != "" && f.Status.LoadTest != in.Test.Name {
		return nil, fmt.Errorf("RedisFault %s was on RedisLoadTest %s, not on %s", name,
			f.Status.LoadTest, in.Test.Name)
	}
	s := newSubject(in)
	one := s.faultOf(f)
	d := s.document(report.Fault)
	d.Name, d.Namespace = f.Name, f.Namespace
	one.state(d)
	if f.Spec.Setting { // nothing is measured against it
		d.Finding, d.Done = one.settingFinding(d), one.done()
		s.more(d, one)
		return d, nil
	}
	for i := range one.result.Objectives {
		d.Objectives = append(d.Objectives, objectiveOf(&one.result.Objectives[i], ""))
	}
	d.Doubts = one.doubts("")
	judgement.Settle(d, nil)
	d.Figures = one.figures("")
	judgement.SetLimits(d)
	d.Finding, d.Done = one.finding(d), one.done()
	d.Timeline = one.timeline(true)
	s.curves(d, one)
	s.zoom(d, one, false)
	s.add(d, events.Timeline(d, s.quiet()), one.requestsSection(), one.operationsSection(),
		one.activeSection(), measured.Servers(s.load, s.lookedTable()), judgement.Objectives(d))
	s.more(d, one)
	return d, nil
}

func named(faults []v1alpha1.RedisFault) string {
	if len(faults) == 0 {
		return ": there is none"
	}
	text := ", but"
	for _, f := range faults {
		text += " " + f.Name
	}
	return text
}

// subject is what a report is made of.
type subject struct {
	in       Input
	test     *v1alpha1.RedisLoadTest
	load     *result.Load
	start    time.Time // of the load; the zero value = it did not begin
	faults   []*fault  // that were injected on this load, in this order
	settings []*v1alpha1.RedisFault
	columns  *curve.Columns // nil without a record
	from     time.Duration  // end of ramp-up and warm-up
	openLoop bool
}

// columnsMost bounds the points of the curves: 5 MB of HTML. The record of 2 h at 100 ms has
// 72,000.
const columnsMost = 200_000

func newSubject(in Input) *subject {
	s := &subject{
		in:   in,
		test: in.Test,
		load: in.Load,
	}
	switch {
	case s.test != nil:
		if s.test.Status.StartTime != nil {
			s.start = s.test.Status.StartTime.Time
		}
		shape := children.Shape(&s.test.Spec)
		s.from, s.openLoop = shape.MeasuredFrom(), shape.OpenLoop()
		if s.load == nil { // the load still runs, or only its object was kept
			s.load = digest.LoadOf(&s.test.Status, shape)
		}
	case in.Load != nil:
		s.start, s.openLoop = in.Load.Start, in.Load.Latency == result.ResponseTime
		s.from = time.Duration(max(0, min(in.Load.Elapsed, in.Load.Planned)-in.Load.Measured))
	case in.Series != nil:
		s.load = recorded(in.Series)
		s.openLoop = s.load.Latency == result.ResponseTime
	default: // a fault alone: it has no load yet, or that was deleted
		s.load = &result.Load{}
	}
	if in.Series != nil {
		if s.start.IsZero() {
			s.start = in.Series.Start
		}
		if in.Series.End() > 0 {
			s.columns = curve.Of(in.Series, columnsMost)
		}
	}
	s.collectFaults()
	return s
}

// collectFaults takes the faults of this load.
func (s *subject) collectFaults() {
	for i := range s.in.Faults {
		f := &s.in.Faults[i]
		switch {
		case s.test != nil && f.Status.LoadTest != s.test.Name, f.Status.InjectedAt == nil:
		case s.test != nil && f.Namespace != s.test.Namespace:
		case f.Spec.Setting:
			s.settings = append(s.settings, f)
		default:
			one := s.faultOf(f)
			if s.in.Series != nil && (one.at < 0 || one.at > s.in.Series.End()+time.Minute) {
				continue // of another run of a test of this name
			}
			s.faults = append(s.faults, one)
		}
	}
	slices.SortStableFunc(s.faults, func(a, b *fault) int { return cmp.Compare(a.at, b.at) })
}

// document begins a report.
func (s *subject) document(kind report.Kind) *report.Document {
	d := &report.Document{
		Version:  report.Version,
		Kind:     kind,
		Name:     s.in.Name,
		Redquake: version.Version,
		Time:     s.start.UTC(),
		State:    report.Complete,
	}
	if s.test != nil {
		d.Namespace, d.Name = s.test.Namespace, s.test.Name
	}
	return d
}

// stateOf is the state of an object by its conditions, and the message of the one that says it.
func stateOf(conditions []metav1.Condition, began bool) (report.State, string) {
	message := func(kind string) string {
		c := meta.FindStatusCondition(conditions, kind)
		if c != nil {
			return c.Message
		}
		return ""
	}
	switch {
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed):
		return report.Failed, message(v1alpha1.ConditionFailed)
	case meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete):
		return report.Complete, ""
	case began:
		return report.Running, message(v1alpha1.ConditionComplete)
	}
	return report.Pending, message(v1alpha1.ConditionComplete)
}

func (s *subject) loadState(d *report.Document) {
	switch {
	case s.test != nil:
		d.State, d.Reason = stateOf(s.test.Status.Conditions, !s.start.IsZero())
		c := meta.FindStatusCondition(s.test.Status.Conditions, v1alpha1.ConditionComplete)
		if c != nil && s.neverBegan() && d.Reason == "" {
			d.Reason = c.Message // why it was ended before
		}
		d.Verdict = report.Verdict(s.test.Status.Verdict)
		c = meta.FindStatusCondition(s.test.Status.Conditions, v1alpha1.ConditionObjectivesMet)
		if c != nil && d.Verdict != "" {
			d.Reason = c.Message
		}
	case s.in.Load != nil:
		d.Verdict, d.Reason = report.Verdict(s.load.Verdict), s.load.Why
		if s.load.Outcome == result.Failed {
			d.State = report.Failed
		}
	case !s.in.Series.Ended():
		d.State = report.Running
	default:
		d.Verdict = report.Inconclusive // see doubts
	}
}

// add adds the sections that have something to show.
func (s *subject) add(d *report.Document, sections ...*report.Section) {
	for _, one := range sections {
		if one != nil {
			d.Sections = append(d.Sections, *one)
		}
	}
}

// noResult is the reason for the doubt about a record of which nobody knows what was measured, and
// required.
const noResult = "NoResult"

const effectUnconfirmed = "EffectUnconfirmed"

// unlisted is the doubt of an inconclusive verdict whose reason is in its condition only.
func unlisted(conditions []metav1.Condition, of string) report.Doubt {
	one := report.Doubt{Reason: string(report.Inconclusive), Of: of}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet)
	if c != nil {
		one.Message = c.Message
	}
	return one
}

// recorded is what the record alone shows of a load: its figures are of the whole time, with the
// ramp-up.
func recorded(series *merged.Series) *result.Load {
	l := &result.Load{
		Start:    series.Start,
		Elapsed:  result.Seconds(series.End()),
		Measured: result.Seconds(series.End()),
		Latency:  result.ServiceTime,
		Notes:    series.Notes,
	}
	every := max(series.End(), series.Step)
	course, err := result.NewCourse(series, every, "", nil)
	if err != nil || len(course.Rows) == 0 { // all operations are always there
		return l
	}
	l.Total = course.Rows[0].Operation
	if l.Total.Service != nil {
		l.Latency = result.ResponseTime
	}
	l.SetGaps(series, 0, series.End())
	l.Operations, l.Errors = operationsOf(series)
	return l
}

// objectiveOf is an objective in a report.
func objectiveOf(o *result.Objective, of string) report.Objective {
	out := report.Objective{
		Name:    o.Name,
		Of:      of,
		Unit:    o.Unit,
		Limit:   o.Limit,
		Actual:  o.Actual,
		AtLeast: o.AtLeast,
		AtMost:  o.AtMost,
		Judged:  report.NotJudged,
		Message: o.Message,
	}
	if o.Met != nil {
		out.Judged = map[bool]report.Judged{true: report.Met, false: report.Missed}[*o.Met]
	}
	return out
}

// objectives are those of the load, and of its faults.
func (s *subject) objectives() (list []report.Objective) {
	for i := range s.load.Objectives {
		list = append(list, objectiveOf(&s.load.Objectives[i], ""))
	}
	for _, f := range s.faults {
		for i := range f.result.Objectives {
			list = append(list, objectiveOf(&f.result.Objectives[i], f.Name))
		}
	}
	return list
}

// operationsOf sums the operations and the errors of a record.
func operationsOf(
	series *merged.Series,
) (operations []result.Operation, errors []result.ErrorCount) {
	sum := summary.Summarize(series, 0)
	for i := range sum.Operations {
		operations = append(operations,
			result.OperationOf(sum.Operations[i].Name, &sum.Operations[i].Figures))
	}
	return operations, result.ErrorCounts(&sum.ByClass)
}
