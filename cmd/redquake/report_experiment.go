package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/schedule"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/result"
)

// experimentIn is the experiment or the schedule of a file with what else was saved of it; nil = the file has none.
func experimentIn(text []byte) (*savedObjects, error) {
	if !bytes.Contains(text, []byte("RedisExperiment")) || record.IsSeries(text) {
		return nil, nil
	}
	var saved savedObjects
	err := documents(text, saved.add)
	if err == nil && len(saved.experiments) == 0 && saved.schedule == nil {
		return nil, nil // of a load test, which an experiment owns
	}
	return &saved, err
}

// ofExperiment makes the report of an experiment or of a schedule.
func (f *reportFlags) ofExperiment(saved *savedObjects, err error) (*report.Document, error) {
	switch {
	case err != nil:
		return nil, err
	case f.fault != "":
		return nil, errors.New("--fault: an experiment has a fault of this name in each run: name the RedisLoadTest of one")
	case saved.schedule != nil:
		if _, err := saved.object(); err != nil {
			return nil, err
		}
		return saved.reportSchedule()
	}
	of, err := saved.experiment()
	if err != nil {
		return nil, err
	}
	e, err := of.report()
	if err != nil {
		return nil, err
	}
	return matrix.New(e.Study(""))
}

// report is an experiment with what is there of its runs.
func (of *savedExperiment) report() (*study.Experiment, error) {
	s, window, details := of.objects, study.WindowOf(of.record), map[string]*study.Detail{}
	for i := range of.record.Runs {
		name := of.record.Runs[i].LoadTest
		test := s.tests[name]
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
		details[name] = study.DetailOf(window, test, faults, kept, series)
	}
	return &study.Experiment{Object: of.object, Plan: of.plan, Record: of.record, Details: details}, nil
}

// resultsOf are the record of a load test and the results of its faults; nil if they are gone.
func (s *savedObjects) resultsOf(loadTest string) (*record.Series, []result.Fault, error) {
	stored := s.results[loadTest]
	if stored == nil {
		return nil, nil, nil
	}
	series, err := record.DecodeSeries(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		return nil, nil, fmt.Errorf("ConfigMap %s: %w", stored.Name, err)
	}
	kept, err := children.ResultsIn(stored)
	return series, kept.Faults, err
}

// reportSchedule makes the report of a schedule.
func (s *savedObjects) reportSchedule() (*report.Document, error) {
	of, name := &schedule.Schedule{Object: s.schedule}, children.HistoryName(s.schedule.Name)
	stored := storedFor(s.schedule, s.histories, name)
	switch {
	case stored != nil:
		history, err := experiment.DecodeHistory(stored.BinaryData[children.HistoryKey])
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
		}
		of.History = history
	case len(s.schedule.Status.History) > 0:
		return nil, fmt.Errorf("the history of RedisExperimentSchedule %s, ConfigMap %s, is missing: %s", s.schedule.Name, name, saveBoth(kube.Schedule, s.schedule.Name, name))
	}
	return of.Report()
}

// readExperimentObjects reads an experiment with its record, and what is there of its runs.
func (f *clusterFlags) readExperimentObjects(ctx context.Context, name string) (*savedObjects, error) {
	saved, err := f.readRecorded(ctx, kube.Experiment, experiments, name, children.ExperimentRecordName(name))
	if err != nil {
		return nil, err
	}
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	for _, path := range []string{loadTests, faults} {
		list, err := c.RawLabelled(ctx, v1alpha1.LabelExperiment+"="+name, fmt.Sprintf(path, c.Namespace))
		if err != nil {
			return nil, fmt.Errorf("list what RedisExperiment %s has run: %w", name, err)
		}
		if err := saved.add(list); err != nil {
			return nil, err
		}
	}
	for test := range saved.tests {
		results := children.ResultsName(test)
		stored, err := c.Raw(ctx, fmt.Sprintf(configMaps, c.Namespace), results)
		if apierrors.IsNotFound(err) { // not stored yet, or deleted
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s: %w", results, err)
		}
		if err := saved.add(stored); err != nil {
			return nil, err
		}
	}
	return saved, nil
}
