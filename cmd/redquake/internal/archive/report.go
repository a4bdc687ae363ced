package archive

import (
	"errors"
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/schedule"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// ForReport is what the report of an experiment is made of: with what is there of its runs.
func (of *Experiment) ForReport() (*study.Experiment, error) {
	s := of.objects
	e := &study.Experiment{
		Object:  of.Object,
		Plan:    of.Plan,
		Record:  of.Record,
		Details: map[string]*study.Detail{},
	}
	window := study.WindowOf(of.Record)
	for i := range of.Record.Runs {
		name := of.Record.Runs[i].LoadTest
		test := s.Tests[name]
		if test == nil {
			continue
		}
		series, kept, err := s.resultsOf(name)
		if err != nil {
			return nil, err
		}
		var faults []v1alpha1.RedisFault
		for _, fault := range s.faults {
			if fault.Status.LoadTest == name {
				faults = append(faults, fault)
			}
		}
		e.Details[name] = study.DetailOf(window, test, faults, kept, series)
	}
	return e, nil
}

// resultsOf are the record of a load test and the results of its faults; nil if they are gone.
func (s *Objects) resultsOf(loadTest string) (*merged.Series, []result.Fault, error) {
	stored := s.results[loadTest]
	if stored == nil {
		return nil, nil, nil
	}
	series, err := merged.Decode(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		return nil, nil, fmt.Errorf("ConfigMap %s: %w", stored.Name, err)
	}
	kept, err := children.ResultsIn(stored)
	return series, kept.Faults, err
}

// ScheduleReport makes the report of a schedule.
func (s *Objects) ScheduleReport() (*report.Document, error) {
	of := &schedule.Schedule{Object: s.Schedule}
	name := children.HistoryName(s.Schedule.Name)
	stored := storedFor(s.Schedule, s.Histories, name)
	switch {
	case stored != nil:
		var err error
		if of.History, err = history.Decode(stored.BinaryData[children.HistoryKey]); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
		}
	case len(s.Schedule.Status.History) > 0:
		return nil, fmt.Errorf("the history of RedisExperimentSchedule %s, ConfigMap %s, is missing: %s",
			s.Schedule.Name, name, saveBoth(kube.Schedule, s.Schedule.Name, name))
	}
	return of.Report()
}

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
func (r *Run) Fill(in *subject.Input) error {
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
	var in subject.Input
	if err := r.Fill(&in); err != nil {
		return nil, err
	}
	in.Faults, in.Results = r.during(), r.kept.Faults
	return run.Course(in, c), nil
}
