// Package reports has the commands that write what was measured: report and results.
package reports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
)

const reportHelp = `Write the report of a load test, of a fault on it, of an experiment, or of a schedule: what
happened, how long, what was lost, how exactly that is known, and why not to trust it.

NAME is a RedisLoadTest of the cluster in the kubeconfig. KIND/NAME is an object of it, too:
redisfault/kill-primary, which is the same as --fault kill-primary, redisexperiment/fsync, or
redisexperimentschedule/nightly, whose report is about all its runs.

FILE is what was saved, - for standard input. An argument that names a file is a FILE. It has, as
YAML or JSON and as far as it was kept:
  a RedisLoadTest, its RedisFaults and the ConfigMap NAME-results
  a RedisExperiment and the ConfigMap NAME-experiment; and, for curves and phases, the objects of its runs
  a RedisExperimentSchedule and the ConfigMap NAME-history
  a record alone, such as load --record writes, or the result of load -o json

Formats:
  html      one file that needs no network: curves with a cursor and zoom, phases, tables; readable
            in print, too
  markdown  for the comment of a pull request
  json      figures, objectives, doubts, sections; its schema is docs/report.schema.json
  junit     a case for each objective, and one for the run; what is not conclusive is an error, so
            that it passes no gate
  csv       a row for each figure
  text      for a terminal

The report of a test that still runs has the figures until now. The exit code is 0 if the report was
written, whatever the verdict is. What each part of a report says is described in docs/reports.md.`

const reportExamples = `  # a page of a load test with its faults
  {name} report checkout-cache -n shop -o html > report.html

  # of one of the faults, for a pull request
  {name} report --fault kill-primary -n shop

  # from what was saved of a run, before its objects were deleted
  kubectl get redisloadtest/checkout-cache redisfault/kill-primary configmap/checkout-cache-results
  -n shop -o yaml > run.yaml
  {name} report run.yaml -o junit > junit.xml

  # from the record of a load from this machine
  {name} report run.record -o html > report.html

  # an experiment, and a schedule; of runs without a cluster, compare writes the report
  {name} report redisexperiment/fsync -n shop -o html > report.html
  {name} report redisexperimentschedule/nightly -n shop -o html > nightly.html
  {name} compare no='no-*.json' always='always-*.json' --report report.html`

// reportFlags are the flags of `redquake report`.
type reportFlags struct {
	cluster cluster.Flags
	output  string
	fault   string
}

// NewReport returns the command report. name is that of the program, as users call it.
func NewReport(name string, io cli.Streams) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:               "report NAME|KIND/NAME|FILE [flags]",
		Short:             "Write the report of a load test, a fault, an experiment or a schedule",
		Long:              reportHelp,
		Example:           strings.ReplaceAll(reportExamples, "{name}", name),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cluster.OrFiles(flags.cluster.Names(cluster.AnyState, kube.LoadTest)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if page.FormNamed(flags.output) == nil {
				return fmt.Errorf("--output: %q is none of %s", flags.output,
					strings.Join(page.FormNames(), ", "))
			}
			if len(args) == 0 && flags.fault == "" {
				return errors.New("name a RedisLoadTest or a file, or a fault by --fault")
			}
			return cli.AsFailure(flags.run(cmd.Context(), args, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&flags.output, "output", "o", "markdown",
		"`format`: "+strings.Join(page.FormNames(), ", "))
	cli.Choices(cmd, "output", page.FormNames()...)
	f.StringVar(&flags.fault, "fault", "", "`name` of the RedisFault that the report is of")
	flags.cluster.Register(f)
	return cmd
}

func (f *reportFlags) run(ctx context.Context, args []string, streams cli.Streams) error {
	d, err := f.document(ctx, args, streams.In)
	if err != nil {
		return err
	}
	return page.FormNamed(f.output).Write(streams.Out, d)
}

// document makes the report: of a file if there is one of this name, otherwise of an object of the
// cluster.
func (f *reportFlags) document(
	ctx context.Context, args []string, stdin io.Reader,
) (*report.Document, error) {
	if len(args) == 0 {
		return OfFault(ctx, &f.cluster, "", f.fault)
	}
	of := args[0]
	text, err := documents.ReadArgument(of, stdin)
	if errors.Is(err, os.ErrNotExist) {
		return f.ofObject(ctx, of, err)
	}
	if err != nil {
		return nil, err
	}
	if of == "-" {
		of = "standard input"
	}
	if saved, err := experimentIn(text); saved != nil {
		d, err := f.ofExperiment(saved, err)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of, err)
		}
		return d, nil
	}
	return f.ofRun(reportInput(text, of))
}

// ofObject makes the report of an object of the cluster: of a load test, or KIND/NAME. Anything
// else was to be a file, which is missing.
func (f *reportFlags) ofObject(
	ctx context.Context, of string, missing error,
) (*report.Document, error) {
	kind, name, typed := strings.Cut(of, "/")
	if !typed {
		kind, name = kube.LoadTest.Name, of
	}
	known, ok := kube.KindOf(kind)
	switch {
	case !ok || name == "" || strings.ContainsAny(name, "/."): // no name has these
		return nil, missing
	case known == kube.Experiment:
		return f.ofExperiment(f.cluster.ReadExperimentRuns(ctx, name))
	case known == kube.Schedule:
		return f.ofExperiment(f.cluster.ReadSchedule(ctx, name))
	case known == kube.Fault && f.fault != "":
		return nil, fmt.Errorf("%s and --fault %s: which fault?", of, f.fault)
	case known == kube.Fault:
		f.fault, name = name, ""
	}
	if f.fault != "" {
		return OfFault(ctx, &f.cluster, name, f.fault)
	}
	return OfLoadTest(ctx, &f.cluster, name)
}

// ofRun makes the report of a load test, or of the fault that was asked for.
func (f *reportFlags) ofRun(in *subject.Input, err error) (*report.Document, error) {
	if err != nil {
		return nil, err
	}
	if f.fault != "" {
		return run.Fault(*in, f.fault)
	}
	return run.LoadTest(*in), nil
}

// reportInput reads what was saved of a run.
func reportInput(text []byte, name string) (*subject.Input, error) {
	input := &subject.Input{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))}
	saved, err := archive.ReadRun(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := saved.Fill(input); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return input, nil
}

// experimentIn is the experiment or the schedule of a file with what else was saved of it; nil =
// the file has none.
func experimentIn(text []byte) (*archive.Objects, error) {
	if !bytes.Contains(text, []byte("RedisExperiment")) || merged.IsEncoded(text) {
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
		return nil, errors.New(
			"--fault: an experiment has a fault of this name in each run: name the RedisLoadTest of one")
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
	return matrix.New(e.Study(""))
}
