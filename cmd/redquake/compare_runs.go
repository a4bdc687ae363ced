package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/result"
)

// runs reads the runs of a file, of a pattern or a folder of files, or of the name of a load test.
func (f *compareFlags) runs(ctx context.Context, what string) ([]experiment.Run, error) {
	info, err := os.Stat(what)
	switch {
	case err == nil && info.IsDir():
		return runsIn(filepath.Join(what, "*"))
	case err == nil:
		return oneRun(readRun(what))
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case strings.ContainsAny(what, "*?["):
		return runsIn(what)
	case strings.ContainsAny(what, "/."): // no name of a test has these
		return nil, fmt.Errorf("there is no file %s", what)
	}
	saved, err := f.cluster.readObjects(ctx, what)
	if err != nil {
		return nil, err
	}
	return oneRun(saved.run())
}

func oneRun(run experiment.Run, err error) ([]experiment.Run, error) {
	return []experiment.Run{run}, err
}

// runsIn reads all files that match a pattern.
func runsIn(pattern string) ([]experiment.Run, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", pattern, err)
	}
	var runs []experiment.Run
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		run, err := readRun(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no file matches %s", pattern)
	}
	return runs, nil
}

// readRun reads the figures of a run from a file.
func readRun(path string) (experiment.Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return experiment.Run{}, err
	}
	run, err := runOf(text)
	if err != nil {
		return experiment.Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func runOf(text []byte) (experiment.Run, error) {
	var load result.Load
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Unmarshal(text, &load) == nil && load.Latency != "" {
		if load.Version != result.LoadVersion {
			return experiment.Run{}, fmt.Errorf("the result has version %d; this program reads version %d", load.Version, result.LoadVersion)
		}
		return experiment.OfLoad(&load), nil
	}
	saved, err := readSaved(bytes.NewReader(text))
	if err != nil {
		return experiment.Run{}, err
	}
	return saved.run()
}

// run is the figures of a saved run: those of the load test's status, else those of its record.
func (r *savedRun) run() (experiment.Run, error) {
	switch {
	case len(r.tests) > 1:
		return experiment.Run{}, errors.New("contains more than one RedisLoadTest: keep one a file")
	case len(r.tests) == 1:
		return experiment.OfObjects(&r.tests[0], r.faultsOf(r.tests[0].Name)), nil
	}
	course, err := result.NewCourse(r.series, r.series.End(), "", r.marks())
	if err != nil {
		return experiment.Run{}, err
	}
	return experiment.OfCourse(course), nil
}
