package run

import (
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

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
