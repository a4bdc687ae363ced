package dashboardserver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/dashboard"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/schedule"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/subject"
)

// detailed is of how many runs of an experiment the records are read: the others are without a
// curve.
const detailed = 100

// Report implements dashboard.Source.
func (s *Source) Report(ctx context.Context, key dashboard.Key) (*report.Document, error) {
	switch key.Resource {
	case dashboard.LoadTests:
		test := &v1alpha1.RedisLoadTest{}
		err := s.get(ctx, key.Namespace, key.Name, test)
		if err != nil {
			return nil, err
		}
		in, err := s.run(ctx, test)
		if err != nil {
			return nil, err
		}
		return run.LoadTest(*in), nil
	case dashboard.Faults:
		return s.fault(ctx, key)
	case dashboard.Experiments:
		return s.experiment(ctx, key)
	case dashboard.Schedules:
		return s.schedule(ctx, key)
	}
	return nil, dashboard.ErrNotFound
}

// fault makes the report of a fault, with the load that measures it unless that was deleted.
func (s *Source) fault(ctx context.Context, key dashboard.Key) (*report.Document, error) {
	fault := &v1alpha1.RedisFault{}
	err := s.get(ctx, key.Namespace, key.Name, fault)
	if err != nil {
		return nil, err
	}
	in := &subject.Input{Name: fault.Status.LoadTest, Faults: []v1alpha1.RedisFault{*fault}}
	if fault.Status.LoadTest != "" {
		test := &v1alpha1.RedisLoadTest{}
		switch err := s.get(ctx, key.Namespace, fault.Status.LoadTest, test); {
		case errors.Is(err, dashboard.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			if in, err = s.run(ctx, test); err != nil {
				return nil, err
			}
		}
	}
	return run.Fault(*in, fault.Name)
}

// run is what a report of a load test is made of.
func (s *Source) run(ctx context.Context, test *v1alpha1.RedisLoadTest) (*subject.Input, error) {
	faults, err := s.faultsOn(ctx, test)
	if err != nil {
		return nil, err
	}
	in := &subject.Input{
		Name:   test.Name,
		Test:   test,
		Faults: faults,
	}
	if in.Series, err = s.series(ctx, test); err != nil {
		return nil, err
	}
	return in, s.results(ctx, test, in)
}

// results sets the stored results of a load test and of its faults. There are none while the load
// still runs and no fault has settled, or if the record was not stored.
func (s *Source) results(ctx context.Context, test *v1alpha1.RedisLoadTest, in *subject.Input) error {
	stored, err := s.configMap(ctx, test, children.ResultsName(test.Name))
	if stored == nil {
		return err
	}
	kept, err := children.ResultsIn(stored)
	if err != nil {
		return fmt.Errorf("the results of RedisLoadTest %s: %w", test.Name, err)
	}
	in.Load, in.Results = kept.Load, kept.Faults
	return nil
}

// series is the record of a load test: of its session while there is one, else as it was stored;
// nil = there is none.
func (s *Source) series(ctx context.Context, test *v1alpha1.RedisLoadTest) (*merged.Series, error) {
	var now merged.Snapshot
	// Nothing is merged into the record meanwhile, and a stop condition may wait for it: so it is
	// copied there and no more.
	if s.Runs.Find(test.UID).Read(func(series *merged.Series) { now = series.Snapshot() }) {
		series, err := now.Series()
		if err != nil {
			return nil, fmt.Errorf("copy the record of RedisLoadTest %s: %w", test.Name, err)
		}
		return series, nil
	}
	data, err := s.stored(ctx, test, children.ResultsName(test.Name), children.ResultsSeriesKey)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	series, err := merged.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the record of RedisLoadTest %s: %w", test.Name, err)
	}
	return series, nil
}

// stored is the value of a key of a ConfigMap that an object controls; nil = there is none, or one
// of an object of this name that was deleted.
func (s *Source) stored(
	ctx context.Context, owner client.Object, name, key string,
) ([]byte, error) {
	stored, err := s.configMap(ctx, owner, name)
	if stored == nil {
		return nil, err
	}
	return stored.BinaryData[key], nil
}

// configMap is a ConfigMap that an object controls; nil = there is none, or one of an object of
// this name that was deleted.
func (s *Source) configMap(
	ctx context.Context, owner client.Object, name string,
) (*corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(&stored, owner):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return &stored, nil
}

// experiment makes the report of an experiment.
func (s *Source) experiment(ctx context.Context, key dashboard.Key) (*report.Document, error) {
	e := &v1alpha1.RedisExperiment{}
	err := s.get(ctx, key.Namespace, key.Name, e)
	if err != nil {
		return nil, err
	}
	plan, err := experiment.NewPlan(&e.Spec)
	if err != nil {
		return nil, fmt.Errorf("RedisExperiment %s: %w", e.Name, err)
	}
	kept := &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}
	data, err := s.stored(ctx, e, children.ExperimentRecordName(e.Name), children.ExperimentRecordKey)
	if err == nil && len(data) > 0 {
		if kept, err = experiment.DecodeRecord(data); err == nil {
			err = plan.Check(kept)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of RedisExperiment %s: %w", e.Name, err)
	}
	of := &study.Experiment{
		Object: e,
		Plan:   plan,
		Record: kept,
	}
	if of.Details, err = s.details(ctx, e, kept); err != nil {
		return nil, err
	}
	return matrix.New(of.Study(""))
}

// schedule makes the report of a schedule.
func (s *Source) schedule(ctx context.Context, key dashboard.Key) (*report.Document, error) {
	o := &v1alpha1.RedisExperimentSchedule{}
	err := s.get(ctx, key.Namespace, key.Name, o)
	if err != nil {
		return nil, err
	}
	of := &schedule.Schedule{Object: o}
	data, err := s.stored(ctx, o, children.HistoryName(o.Name), children.HistoryKey)
	if err == nil && len(data) > 0 {
		of.History, err = history.Decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of RedisExperimentSchedule %s: %w", o.Name, err)
	}
	return of.Report()
}

// details are what is there of the runs of an experiment beyond its record. A run that has ended
// does not change any more.
func (s *Source) details(
	ctx context.Context, e *v1alpha1.RedisExperiment, kept *experiment.Record,
) (map[string]*study.Detail, error) {
	window, found := study.WindowOf(kept), map[string]*study.Detail{}
	runs := kept.Runs[max(0, len(kept.Runs)-detailed):]
	for i := range runs {
		test := &v1alpha1.RedisLoadTest{}
		err := s.get(ctx, e.Namespace, runs[i].LoadTest, test)
		if errors.Is(err, dashboard.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		in, err := s.run(ctx, test)
		if err != nil {
			return nil, err
		}
		found[test.Name] = study.DetailOf(window, test, in.Faults, in.Results, in.Series)
	}
	return found, nil
}
