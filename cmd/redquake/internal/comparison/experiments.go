package comparison

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
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// compareArgs checks the number of the arguments: cells, or experiments.
func compareArgs(_ *cobra.Command, args []string) error {
	if ofExperiments(args) {
		if len(args) > 2 {
			return errors.New("two experiments are compared at most; runs are compared by cells, each " +
				"with a name: before=RUNS after=RUNS")
		}
		return nil
	}
	if len(args) < 2 {
		return errors.New("name two cells at least, as before='before-*.json' after='after-*.json', or " +
			"an experiment")
	}
	return nil
}

// ofExperiments reports whether the arguments are experiments: cells have a name and a =.
func ofExperiments(args []string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool {
		return strings.Contains(
			arg, "=")
	})
}

// runExperiments compares the cells of an experiment as it has planned, or with those of an earlier
// one, which is the first argument.
func (f *compareFlags) runExperiments(
	ctx context.Context, args []string, streams cli.Streams,
) error {
	if len(f.figures) > 0 || len(f.margins) > 0 {
		return errors.New(
			"--figure and --margin: those of an experiment are in its spec.compare, as they must be chosen before it runs")
	}
	var all []*archive.Experiment
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
	if err := f.writeReport(func() (*report.Document, error) {
		return f.documentOf(all, args,
			table)
	}); err != nil {
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
	return &cli.Failure{Code: cli.ExitInconclusive}
}

// documentOf is the report of what was compared.
func (f *compareFlags) documentOf(
	all []*archive.Experiment, args []string, table *comparisons.Comparisons,
) (*report.Document, error) {
	require := v1alpha1.ComparisonRequirement(f.require)
	var of []*study.Experiment
	for _, saved := range all {
		e, err := saved.ForReport()
		if err != nil {
			return nil, err
		}
		of = append(of, e)
	}
	if len(of) == 1 {
		return matrix.New(of[0].Study(require))
	}
	return matrix.New(study.Two(of[0], of[1], earlierName(all, args), all[1].Object.Name, table,
		require))
}

// earlierName is what the earlier of two experiments is called: its argument where both have the
// same name.
func earlierName(all []*archive.Experiment, args []string) string {
	if then := all[0].Object.Name; then != all[1].Object.Name {
		return then
	}
	return args[0]
}

// tableOf compares the cells of one experiment, or those of the second with the first.
func (f *compareFlags) tableOf(
	all []*archive.Experiment, args []string,
) (*comparisons.Comparisons, error) {
	if len(all) == 1 {
		of := all[0]
		return of.Plan.Outcome(of.Object, of.Record, v1alpha1.ComparisonRequirement(f.require)), nil
	}
	then, now := all[0], all[1]
	why := then.Plan.Incomplete(then.Object, then.Record)
	if why != "" {
		return nil, fmt.Errorf("%s is not complete, so that nothing can be compared with it: %s", args[0],
			redis.Printable(why, len(why)))
	}
	a, b := then.Record.Runs, now.Record.Runs
	if len(a) > 0 && len(b) > 0 && a[0].Start.Equal(b[0].Start) {
		return nil, fmt.Errorf("%s and %s are the same experiment", args[0], args[1])
	}
	earlier := experiment.Earlier{
		Name:     earlierName(all, args),
		Template: experiment.HashOf(&then.Object.Spec),
		Record:   then.Record,
	}
	against := experiment.CompareWith(now.Record, experiment.HashOf(&now.Object.Spec), earlier,
		now.Plan.Question(&now.Object.Spec.Compare), now.Plan.BaselineOf)
	if len(against.Rows) == 0 {
		return nil, fmt.Errorf("%s has none of the cells of %s", args[1], args[0])
	}
	table := &comparisons.Comparisons{
		Version:     comparisons.Version,
		Baseline:    earlier.Name,
		Comparisons: against.Rows,
		Notes:       against.Notes,
	}
	now.Plan.Provisional(table, now.Object, now.Record)
	return table, nil
}

// experiment reads an experiment with its record: from a file if there is one of this name,
// otherwise from the cluster.
func (f *compareFlags) experiment(
	ctx context.Context, of string, in io.Reader,
) (*archive.Experiment, error) {
	if of == "-" {
		of = "standard input"
		text, err := documents.ReadBounded(in, of, documents.MaxBytes)
		if err != nil {
			return nil, err
		}
		return readExperiment(text, of)
	}
	text, err := documents.Read(of)
	switch kind, name, named := experimentName(of); {
	case err == nil:
		return readExperiment(text, of)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case !named:
		return nil, fmt.Errorf(
			"there is no file %s: an experiment of the cluster is redisexperiment/NAME, and runs are "+
				"NAME=RUNS, such as before=before-1.json,before-2.json", of)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return nil, fmt.Errorf("%q is no name of a %s", name, kind.Name)
	case kind == kube.Schedule:
		saved, err := f.cluster.ReadSchedule(ctx, name)
		if err != nil {
			return nil, err
		}
		return saved.Experiment() // which names the runs that can be compared
	default:
		return f.cluster.ReadExperiment(ctx, name)
	}
}

// experimentName is the kind and the name in an argument such as redisexperiment/NAME, as kubectl
// takes it and prints it.
func experimentName(arg string) (kind kube.Kind, name string, ok bool) {
	typed, name, ok := strings.Cut(arg, "/")
	kind, known := kube.KindOf(typed)
	return kind, name, ok && known && (kind == kube.Experiment || kind == kube.Schedule)
}

// readExperiment reads an experiment from the content of a file. Errors begin with the file's name.
func readExperiment(text []byte, file string) (*archive.Experiment, error) {
	if merged.IsEncoded(text) {
		return nil, fmt.Errorf(
			"%s is the record of a run: runs are compared by cells, each with a name, as "+
				"before=%s after=OTHER", file, file)
	}
	var saved archive.Objects
	if err := documents.Each(text, saved.Add); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	found, err := saved.Experiment()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}
