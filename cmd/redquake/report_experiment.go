package main

import (
	"bytes"
	"errors"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
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
