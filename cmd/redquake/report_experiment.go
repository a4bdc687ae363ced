package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
)

// experimentIn is the experiment or the schedule of a file with what else was saved of it; nil = the file has none.
func experimentIn(text []byte) (*archive.Objects, error) {
	if !bytes.Contains(text, []byte("RedisExperiment")) || record.IsSeries(text) {
		return nil, nil
	}
	var saved archive.Objects
	err := documents.Each(text, saved.Add)
	if err == nil && len(saved.Experiments) == 0 && saved.Schedule == nil {
		return nil, nil // of a load test, which an experiment owns
	}
	return &saved, err
}

// ofExperiment makes the report of an experiment or of a schedule, unless a fault was asked for.
func (f *reportFlags) ofExperiment(saved *archive.Objects, err error) (*report.Document, error) {
	switch {
	case err != nil:
		return nil, err
	case f.fault != "":
		return nil, errors.New("--fault: an experiment has a fault of this name in each run: name the RedisLoadTest of one")
	}
	return documentOfExperiment(saved)
}

// documentOfExperiment makes the report of an experiment or of a schedule.
func documentOfExperiment(saved *archive.Objects) (*report.Document, error) {
	if saved.Schedule != nil {
		if _, err := saved.Own(); err != nil {
			return nil, err
		}
		return saved.ScheduleReport()
	}
	of, err := saved.Experiment()
	if err != nil {
		return nil, err
	}
	e, err := of.ForReport()
	if err != nil {
		return nil, err
	}
	return e.Report("")
}

// readExperimentObjects reads an experiment with its record, and what is there of its runs.
func (f *clusterFlags) readExperimentObjects(ctx context.Context, name string) (*archive.Objects, error) {
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
