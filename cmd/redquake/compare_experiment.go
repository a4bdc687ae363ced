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
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/result"
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

// runExperiments compares the cells of an experiment as it has planned, or with those of an earlier one, which is the first argument.
func (f *compareFlags) runExperiments(ctx context.Context, args []string, streams cli.Streams) error {
	if len(f.figures) > 0 || len(f.margins) > 0 {
		return errors.New("--figure and --margin: those of an experiment are in its spec.compare, as they must be chosen before it runs")
	}
	var all []*savedExperiment
	for _, arg := range args {
		saved, err := f.experiment(ctx, arg, streams.In)
		if err != nil {
			return cli.AsFailure(err)
		}
		all = append(all, saved)
	}
	table, err := f.tableOf(all, args)
	if err != nil {
		return cli.AsFailure(err)
	}
	if err := f.write(streams, table); err != nil {
		return cli.AsFailure(err)
	}
	if err := f.writeReport(func() (*report.Document, error) { return f.documentOf(all, args, table) }); err != nil {
		return cli.AsFailure(err)
	}
	if table.Experiment == nil {
		return f.judge(table)
	}
	switch table.Experiment.Verdict {
	case string(v1alpha1.VerdictPass):
		return nil
	case string(v1alpha1.VerdictFail):
		return &cli.Failure{Code: cli.ExitFailed}
	}
	return &cli.Failure{Code: cli.ExitError}
}

// documentOf is the report of what was compared.
func (f *compareFlags) documentOf(all []*savedExperiment, args []string, table *result.Comparisons) (*report.Document, error) {
	require := v1alpha1.ComparisonRequirement(f.require)
	var of []*matrix.Experiment
	for _, saved := range all {
		e, err := saved.report()
		if err != nil {
			return nil, err
		}
		of = append(of, e)
	}
	if len(of) == 1 {
		return of[0].Report(require)
	}
	return matrix.Two(of[0], of[1], earlierName(all, args), all[1].object.Name, table, require)
}

// earlierName is what the earlier of two experiments is called: its argument where both have the same name.
func earlierName(all []*savedExperiment, args []string) string {
	if then := all[0].object.Name; then != all[1].object.Name {
		return then
	}
	return args[0]
}

// tableOf compares the cells of one experiment, or those of the second with the first.
func (f *compareFlags) tableOf(all []*savedExperiment, args []string) (*result.Comparisons, error) {
	if len(all) == 1 {
		of := all[0]
		return of.plan.Outcome(of.object, of.record, v1alpha1.ComparisonRequirement(f.require)), nil
	}
	then, now := all[0], all[1]
	if why := then.plan.Incomplete(then.object, then.record); why != "" {
		return nil, fmt.Errorf("%s is not complete, so that nothing can be compared with it: %s", args[0], redis.Printable(why, len(why)))
	}
	if a, b := then.record.Runs, now.record.Runs; len(a) > 0 && len(b) > 0 && a[0].Start.Equal(b[0].Start) {
		return nil, fmt.Errorf("%s and %s are the same experiment", args[0], args[1])
	}
	earlier := experiment.Earlier{Name: earlierName(all, args), Template: experiment.HashOf(&then.object.Spec), Record: then.record}
	against := experiment.CompareWith(now.record, experiment.HashOf(&now.object.Spec), earlier, now.plan.Question(&now.object.Spec.Compare), now.plan.BaselineOf)
	if len(against.Rows) == 0 {
		return nil, fmt.Errorf("%s has none of the cells of %s", args[1], args[0])
	}
	table := &result.Comparisons{Version: result.ComparisonVersion, Baseline: earlier.Name, Comparisons: against.Rows, Notes: against.Notes}
	now.plan.Provisional(table, now.object, now.record)
	return table, nil
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
	switch kind, name, named := experimentName(of); {
	case err == nil:
		return readExperiment(text, of)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case !named:
		return nil, fmt.Errorf("there is no file %s: an experiment of the cluster is redisexperiment/NAME, and runs are NAME=RUNS, such as before=before-1.json,before-2.json", of)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return nil, fmt.Errorf("%q is no name of a %s", name, kind.Name)
	case kind == kube.Schedule:
		saved, err := f.cluster.readSchedule(ctx, name)
		if err != nil {
			return nil, err
		}
		return saved.experiment() // which names the runs that can be compared
	default:
		return f.cluster.readExperiment(ctx, name)
	}
}

// experimentName is the kind and the name in an argument such as redisexperiment/NAME, as kubectl takes it and prints it.
func experimentName(arg string) (kind kube.Kind, name string, ok bool) {
	typed, name, ok := strings.Cut(arg, "/")
	kind, known := kube.KindOf(typed)
	return kind, name, ok && known && (kind == kube.Experiment || kind == kube.Schedule)
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
