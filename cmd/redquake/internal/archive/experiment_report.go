package archive

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/schedule"
	"github.com/redquake/redquake/internal/report/study"
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
