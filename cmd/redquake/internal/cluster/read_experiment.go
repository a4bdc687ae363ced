package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
)

// ReadExperiment reads an experiment and its record, if it has one.
func (f *Flags) ReadExperiment(ctx context.Context, name string) (*archive.Experiment, error) {
	saved, err := f.readRecorded(ctx, kube.Experiment, experiments, name,
		children.ExperimentRecordName(name))
	if err != nil {
		return nil, err
	}
	return saved.Experiment()
}

// ReadSchedule reads a schedule and its history, if it has one.
func (f *Flags) ReadSchedule(ctx context.Context, name string) (*archive.Objects, error) {
	return f.readRecorded(ctx, kube.Schedule, schedules, name, children.HistoryName(name))
}

// readRecorded reads an object of a kind, whose path is given, and the ConfigMap with its record,
// if it has one.
func (f *Flags) readRecorded(
	ctx context.Context, kind kube.Kind, path, name, record string,
) (*archive.Objects, error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	namespace := c.Namespace
	var saved archive.Objects
	object, err := c.Raw(ctx, fmt.Sprintf(path, namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s in namespace %s", kind.Name, name, namespace)
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kind.Name, name, err)
	}
	if err := saved.Add(object); err != nil {
		return nil, err
	}
	switch object, err = c.Raw(ctx, fmt.Sprintf(configMaps, namespace), record); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", record, err)
	default:
		if err := saved.Add(object); err != nil {
			return nil, err
		}
	}
	return &saved, nil
}

// ReadExperimentRuns reads an experiment with its record, and what is there of its runs.
func (f *Flags) ReadExperimentRuns(ctx context.Context, name string) (*archive.Objects, error) {
	saved, err := f.readRecorded(ctx, kube.Experiment, experiments, name,
		children.ExperimentRecordName(name))
	if err != nil {
		return nil, err
	}
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	for _, path := range []string{loadTests, faults} {
		list, err := c.RawLabelled(ctx, v1alpha1.LabelExperiment+"="+name, fmt.Sprintf(path, c.Namespace))
		if err != nil {
			return nil, fmt.Errorf("list what RedisExperiment %s has run: %w", name, err)
		}
		if err := saved.Add(list); err != nil {
			return nil, err
		}
	}
	for test := range saved.Tests {
		results := children.ResultsName(test)
		stored, err := c.Raw(ctx, fmt.Sprintf(configMaps, c.Namespace), results)
		if apierrors.IsNotFound(err) { // not stored yet, or deleted
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s: %w", results, err)
		}
		if err := saved.Add(stored); err != nil {
			return nil, err
		}
	}
	return saved, nil
}
