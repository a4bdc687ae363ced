package archive

import (
	"errors"

	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
)

// Figures are the figures of a saved run: of the results that were kept beside its record, else of
// the statuses of its objects, or of the record.
func (r *Run) Figures() (experiment.Run, error) {
	switch {
	case len(r.Tests) > 1:
		return experiment.Run{}, errors.New("contains more than one RedisLoadTest: keep one a file")
	case len(r.Tests) == 1:
		kept := r.kept
		if r.test != r.Tests[0].Name { // the record is of another one
			kept = result.Run{}
		}
		return experiment.OfObjects(&r.Tests[0], r.faultsOf(r.Tests[0].Name), kept), nil
	case r.kept.Load != nil:
		return experiment.OfLoad(r.kept.Load, r.faultResults()...), nil
	}
	course, err := result.NewCourse(r.Series, r.Series.End(), "", r.Marks())
	if err != nil {
		return experiment.Run{}, err
	}
	return experiment.OfCourse(course), nil
}

// Fill sets what the report of a run is made of. More than one load test, of which no record says
// which one is meant, is an error.
func (r *Run) Fill(in *run.Input) error {
	in.Series = r.Series
	in.Load = r.kept.Load
	in.Results = r.kept.Faults
	in.Faults = r.Faults
	tests := r.Tests
	if r.test != "" { // the record says whose it is
		in.Name = r.test
		for i := range tests {
			if tests[i].Name == r.test {
				in.Test = &tests[i]
				return nil
			}
		}
		return nil
	}
	if len(tests) > 1 {
		return errors.New(
			"contains more than one RedisLoadTest, and no record that says which one is meant: keep one a file")
	}
	if len(tests) == 1 {
		in.Test = &tests[0]
	}
	return nil
}

// Course makes the parts of a report that show a course.
func (r *Run) Course(c *result.Course) (*report.Document, error) {
	var in run.Input
	if err := r.Fill(&in); err != nil {
		return nil, err
	}
	in.Faults, in.Results = r.during(), r.kept.Faults
	return run.Course(in, c), nil
}
