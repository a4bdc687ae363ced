package comparison

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/internal/experiment"
)

// runs reads the runs of a file, of a pattern or a folder of files, or of the name of a load test.
func (f *compareFlags) runs(ctx context.Context, what string) ([]experiment.Run, error) {
	if what == "" {
		return nil, errors.New("between two commas, or at an end, there is no file and no name")
	}
	info, err := os.Stat(what)
	switch {
	case err == nil && info.IsDir():
		return runsIn(what)
	case err == nil:
		return oneRun(readRun(what))
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case strings.ContainsAny(what, "*?["):
		paths, err := filepath.Glob(what)
		if err != nil {
			return nil, fmt.Errorf("pattern %s: %w", what, err)
		}
		return readRuns(paths, "no file matches "+what)
	case len(validation.IsDNS1123Subdomain(what)) > 0 || strings.Contains(what, "."):
		return nil, fmt.Errorf("there is no file %s", what)
	}
	saved, err := f.cluster.ReadRun(ctx, what)
	if apierrors.IsForbidden(err) { // of a ConfigMap, which roles for viewers do not include
		if saved, err = f.cluster.ReadRunStatuses(ctx, what); err == nil {
			f.notes = append(f.notes,
				fmt.Sprintf(
					"The figures of %s are those of its status, which rounds them: the right to get ConfigMaps is missing.",
					what))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("there is no file %s; as the name of a RedisLoadTest: %w", what, err)
	}
	return oneRun(saved.Figures())
}

func oneRun(run experiment.Run, err error) ([]experiment.Run, error) {
	return []experiment.Run{run}, err
}

// runsIn reads all files of a folder but hidden ones.
func runsIn(folder string) ([]experiment.Run, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return readRuns(paths, "there is no file in "+folder)
}

func readRuns(paths []string, none string) ([]experiment.Run, error) {
	if len(paths) == 0 {
		return nil, errors.New(none)
	}
	var runs []experiment.Run
	for _, path := range paths {
		run, err := readRun(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// readRun reads the figures of a run from a file.
func readRun(path string) (experiment.Run, error) {
	text, err := documents.Read(path)
	if err != nil {
		return experiment.Run{}, err
	}
	run, err := runOf(text)
	if err != nil {
		return experiment.Run{}, fmt.Errorf("%s %w", path, err)
	}
	run.Source = path
	return run, nil
}

// distinct refuses a run that a cell has twice, such as by its result and its record: it would
// count as a repeat of itself.
func distinct(runs []experiment.Run) error {
	for i, r := range runs {
		for _, o := range runs[:i] {
			if !r.Start.IsZero() && r.Start.Sub(o.Start).Abs() < time.Millisecond {
				return fmt.Errorf("%s and %s are the same run, of %s", o.Source, r.Source,
					r.Start.UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

func runOf(text []byte) (experiment.Run, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return experiment.Run{}, errors.New("is empty: the load was refused, or has not ended")
	}
	saved, err := archive.ReadRun(bytes.NewReader(text))
	if err != nil {
		return experiment.Run{}, fmt.Errorf("is neither a result of load -o json nor a saved run: it %w",
			err)
	}
	return saved.Figures()
}
