// Package subject is what the report of a load test or of a fault is made of: the load, the faults
// on it, and what their objects, the record of the load or its result say of them.
package subject

import (
	"cmp"
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
	"github.com/redquake/redquake/internal/result"
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
}

// complete adds the objects of faults of which only the result was kept, and returns their names.
func (in *Input) complete() (lone []string) {
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
		in.Faults, lone = append(in.Faults, *one), append(lone, r.Name)
	}
	return lone
}

// Run is a load with the faults on it.
type Run struct {
	In       Input // with the objects of all faults
	Test     *v1alpha1.RedisLoadTest
	Load     *result.Load
	Start    time.Time // of the load; the zero value = it did not begin
	Faults   []*Fault  // that were injected on this load, in this order
	Settings []*v1alpha1.RedisFault
	Columns  *curve.Columns // nil without a record
	From     time.Duration  // end of ramp-up and warm-up
	OpenLoop bool

	lone []string // names of the faults of which only the result was kept
}

// columnsMost bounds the points of the curves: 5 MB of HTML. The record of 2 h at 100 ms has
// 72,000.
const columnsMost = 200_000

// New reads an input.
func New(in Input) *Run {
	lone := in.complete()
	s := &Run{
		In:   in,
		Test: in.Test,
		Load: in.Load,
		lone: lone,
	}
	switch {
	case s.Test != nil:
		if s.Test.Status.StartTime != nil {
			s.Start = s.Test.Status.StartTime.Time
		}
		shape := children.Shape(&s.Test.Spec)
		s.From, s.OpenLoop = shape.MeasuredFrom(), shape.OpenLoop()
		if s.Load == nil { // the load still runs, or only its object was kept
			s.Load = digest.LoadOf(&s.Test.Status, shape)
		}
	case in.Load != nil:
		s.Start, s.OpenLoop = in.Load.Start, in.Load.Latency == result.ResponseTime
		s.From = time.Duration(max(0, min(in.Load.Elapsed, in.Load.Planned)-in.Load.Measured))
	case in.Series != nil:
		s.Load = recorded(in.Series)
		s.OpenLoop = s.Load.Latency == result.ResponseTime
	default: // a fault alone: it has no load yet, or that was deleted
		s.Load = &result.Load{}
	}
	if in.Series != nil {
		if s.Start.IsZero() {
			s.Start = in.Series.Start
		}
		if in.Series.End() > 0 {
			s.Columns = curve.Of(in.Series, columnsMost)
		}
	}
	s.collectFaults()
	return s
}

// collectFaults takes the faults of this load.
func (s *Run) collectFaults() {
	for i := range s.In.Faults {
		f := &s.In.Faults[i]
		switch {
		case s.Test != nil && f.Status.LoadTest != s.Test.Name, f.Status.InjectedAt == nil:
		case s.Test != nil && f.Namespace != s.Test.Namespace:
		case f.Spec.Setting:
			s.Settings = append(s.Settings, f)
		default:
			one := s.FaultOf(f)
			if s.In.Series != nil && (one.At < 0 || one.At > s.In.Series.End()+time.Minute) {
				continue // of another run of a test of this name
			}
			s.Faults = append(s.Faults, one)
		}
	}
	slices.SortStableFunc(s.Faults, func(a, b *Fault) int { return cmp.Compare(a.At, b.At) })
}

// NeverBegan reports whether the load has not sent a request, and if it is over never will.
func (s *Run) NeverBegan() bool {
	return s.Test != nil && s.Start.IsZero()
}

// Guarantees are what applications count on; nil = the workload does not find that out.
func (s *Run) Guarantees() *result.Guarantees {
	if s.Load.Guarantees != nil || s.Test == nil {
		return s.Load.Guarantees
	}
	return digest.GuaranteesOf(s.Test.Status.Guarantees, s.Start)
}

// Verification is what was read back; nil = nothing was.
func (s *Run) Verification() *result.Verification {
	if s.Load.Verification != nil || s.Test == nil {
		return s.Load.Verification
	}
	return digest.VerificationOf(s.Test.Status.Verification, s.Start)
}

// StateOf is the state of an object by its conditions, and the message of the one that says it.
func StateOf(conditions []metav1.Condition, began bool) (report.State, string) {
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
