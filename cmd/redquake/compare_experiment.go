package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/redquake/redquake/api/v1alpha1"
)

// compareArgs checks the number of the arguments: cells, or experiments.
func compareArgs(cmd *cobra.Command, args []string) error {
	if ofExperiments(args) {
		return cobra.RangeArgs(1, 2)(cmd, args)
	}
	return cobra.MinimumNArgs(2)(cmd, args)
}

// ofExperiments reports whether the arguments are experiments: cells have a name and a =.
func ofExperiments(args []string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
}

// runExperiments compares the cells of an experiment as it has planned.
func (f *compareFlags) runExperiments(ctx context.Context, args []string, streams streams) error {
	if len(f.figures) > 0 || len(f.margins) > 0 {
		return errors.New("--figure and --margin: those of an experiment are in its spec.compare, as they must be chosen before it runs")
	}
	if len(args) > 1 {
		return errors.New("two experiments cannot be compared yet: set spec.compareTo of the later one")
	}
	saved, err := f.experiment(ctx, args[0], streams.in)
	if err != nil {
		return broken(err)
	}
	table := saved.plan.Outcome(saved.object, saved.record, v1alpha1.ComparisonRequirement(f.require))
	if err := f.write(streams, table); err != nil {
		return broken(err)
	}
	switch table.Experiment.Verdict {
	case string(v1alpha1.VerdictPass):
		return nil
	case string(v1alpha1.VerdictFail):
		return &failure{code: exitFailed}
	}
	return &failure{code: exitError}
}

// experiment reads an experiment with its record: from a file if there is one of this name, otherwise from the cluster.
func (f *compareFlags) experiment(ctx context.Context, of string, in io.Reader) (*savedExperiment, error) {
	if of == "-" {
		of = "standard input"
		text, err := readBounded(in, of, maxFile)
		if err != nil {
			return nil, err
		}
		return readExperiment(text, of)
	}
	text, err := readFile(of)
	switch name, named := experimentName(of); {
	case err == nil:
		return readExperiment(text, of)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case !named:
		return nil, fmt.Errorf("there is no file %s: an experiment of the cluster is redisexperiment/NAME, and runs are NAME=RUNS, such as before=before-1.json,before-2.json", of)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return nil, fmt.Errorf("%q is no name of a RedisExperiment", name)
	default:
		return f.cluster.readExperiment(ctx, name)
	}
}

// experimentName is the name in an argument such as redisexperiment/NAME, as kubectl takes it and prints it.
func experimentName(arg string) (name string, ok bool) {
	kind, name, ok := strings.Cut(arg, "/")
	kind = strings.TrimSuffix(strings.ToLower(kind), "."+v1alpha1.GroupVersion.Group)
	return name, ok && slices.Contains([]string{"redisexperiment", "redisexperiments", "rexp"}, kind)
}

// readExperiment reads an experiment from the content of a file. Errors begin with the file's name.
func readExperiment(text []byte, file string) (*savedExperiment, error) {
	var saved savedObjects
	if err := documents(text, saved.add); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	found, err := saved.experiment()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}
