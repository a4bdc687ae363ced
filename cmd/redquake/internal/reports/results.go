package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

const resultsHelp = `Show the course of a finished load test: throughput, errors and latencies over time, the times
without a success, and the faults.

NAME is a RedisLoadTest of the cluster in the kubeconfig. FILE is what was saved of one, - for
standard input: the ConfigMap NAME-results as YAML or JSON, with the RedisFaults if they are in the
file, or a record alone, such as load --record writes. An argument that names a file is a FILE.

Latencies are those of successes: response time from the intended arrival (open loop), or service
time from the send (closed loop). A row counts what was answered in it. The schema of -o json and -o
csv is described in docs/record.md.`

const resultsExamples = `  # every 10 seconds, all operations
  {name} results checkout-cache -n shop

  # the finest rows that the record has of one operation, for a notebook
  {name} results checkout-cache -n shop --every 100ms --operation set -o csv > set.csv

  # from what was saved of a run, before its objects were deleted
  kubectl get configmap checkout-cache-results -n shop -o yaml > run.yaml
  echo --- >> run.yaml
  kubectl get redisfaults -n shop -o yaml >> run.yaml
  {name} results run.yaml

  # from the record of a load from this machine, second by second
  {name} results run.record --every 1s`

// resultsFlags are the flags of `redquake results`.
type resultsFlags struct {
	cluster   cluster.Flags
	output    string
	every     time.Duration
	operation string
}

// NewResults returns the command results. name is that of the program, as users call it.
func NewResults(name string, io cli.Streams) *cobra.Command {
	var flags resultsFlags
	cmd := &cobra.Command{
		Use:               "results NAME|FILE [flags]",
		Short:             "Show the course of a finished load test",
		Long:              resultsHelp,
		Example:           strings.ReplaceAll(resultsExamples, "{name}", name),
		Args:              cli.One("a RedisLoadTest, or a file that was saved of one"),
		ValidArgsFunction: cluster.OrFiles(flags.cluster.Names(cluster.AnyState, kube.LoadTest)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return cli.AsFailure(flags.run(cmd.Context(), args[0], io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&flags.output, "output", "o", "table", "`format`: table, json or csv")
	f.DurationVar(&flags.every, "every", 10*time.Second,
		"length of a row, rounded up to whole steps of the record")
	cli.Choices(cmd, "output", "table", "json", "csv")
	f.StringVar(&flags.operation, "operation", "",
		"`name` of the operation that the figures are of (default: all together)")
	flags.cluster.Register(f)
	return cmd
}

func (f *resultsFlags) check() error {
	switch {
	case !slices.Contains([]string{"table", "json", "csv"}, f.output):
		return fmt.Errorf("--output: %q is none of table, json and csv", f.output)
	case f.every <= 0:
		return errors.New("--every: must be above 0")
	}
	return nil
}

func (f *resultsFlags) run(ctx context.Context, of string, streams cli.Streams) error {
	saved, err := f.read(ctx, of, streams.In)
	if err != nil {
		return err
	}
	if saved.Series == nil {
		return fmt.Errorf("contains no record: save the ConfigMap %s, too", children.ResultsName("NAME"))
	}
	course, err := result.NewCourse(saved.Series, f.every, f.operation, saved.Marks())
	if err != nil {
		return err
	}
	switch f.output {
	case "json":
		return output.WriteJSON(streams.Out, course)
	case "csv":
		return output.WriteCSV(streams.Out, course)
	}
	d, err := saved.Course(course)
	if err != nil {
		return err
	}
	return report.WriteParts(streams.Out, d)
}

// read reads a record from a file if there is one of this name, otherwise from the cluster.
func (f *resultsFlags) read(ctx context.Context, of string, in io.Reader) (*archive.Run, error) {
	if of == "-" {
		saved, err := archive.ReadRun(in)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return saved, nil
	}
	file, err := os.Open(of)
	switch {
	// no name of a test has these
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(of, "/."):
		return f.cluster.ReadRecord(ctx, of)
	case err != nil:
		return nil, err
	}
	defer func() { _ = file.Close() }()
	saved, err := archive.ReadRun(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	return saved, nil
}
