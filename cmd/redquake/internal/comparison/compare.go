// Package comparison has the command compare: of runs, and of the cells of experiments.
package comparison

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/result/comparisons"
)

const compareHelp = `Compare the figures of several runs: is a setting better or worse than another, the same, or can
this many runs not tell?

Each argument is a cell, NAME=RUNS. The first one is the baseline of the others. RUNS are separated
by commas, and each is
  a file: what load -o json wrote, a record, or saved objects (RedisLoadTest with its RedisFaults,
  or its ConfigMap NAME-results)
  a pattern of files such as 'runs/always-*.json', or a folder of them
  the name of a RedisLoadTest in the cluster of the kubeconfig

The runs of a cell are its repeats: at least 4 of two cells, 3 of more; 6 are better. Take them in
turns, one of each cell after the other, so that what changes on the machine meanwhile changes all
of them. Of cells that ran one after the other, only a difference that is beyond the margin for sure
is reported. How figures are compared, and what the words mean: docs/statistics.md.

Or the argument is an EXPERIMENT, whose cells are compared with their baselines in the figures of
its spec.compare:
  redisexperiment/NAME or rexp/NAME: a RedisExperiment in the cluster of the kubeconfig
  a file, - for standard input: a RedisExperiment saved with its ConfigMap NAME-experiment, which
  has the figures of the runs
Of two of them each cell of the second is compared with itself in the first, which is the earlier
one. A schedule is compared by its runs, which are such experiments.

Until an experiment is complete there are figures, but no verdicts. One that has not begun shows
what it will compare, and what its repeats are too few for: also a file that was never applied to a
cluster.

Exit codes: of runs 0, also where something is worse; with --require 1 if it is not met, 2 if these
runs are inconclusive. Of an experiment 0 if its verdict is Pass, 1 if it is Fail, 2 if it is
Inconclusive or there is none yet; with --require by that instead of spec.compare.require. Of two
experiments as of runs.`

const compareExamples = `  # six runs of each setting, in turns
  for i in 1 2 3 4 5 6; do for fsync in no always; do
    redis-cli config set appendfsync $fsync
    {name} load --address 127.0.0.1:6379 --users 50 --duration 30s -o json > $fsync-$i.json
  done; done
  {name} compare no='no-*.json' always='always-*.json'

  # fail a pipeline if a figure has become worse than in the runs of the last release
  {name} compare released=runs/1.4 candidate=runs/1.5 --require NotWorse -o markdown

  # load tests in a cluster
  {name} compare old=cache-a-1,cache-a-2,cache-a-3 new=cache-b-1,cache-b-2,cache-b-3 -n shop
  --figure latencyP99

  # an experiment in a cluster, and what was saved of it before it was deleted
  {name} compare redisexperiment/fsync -n shop
  kubectl get redisexperiment/fsync configmap/fsync-experiment -n shop -o yaml > fsync.yaml
  {name} compare fsync.yaml -o markdown

  # an experiment against an earlier one with the same cells
  {name} compare redisexperiment/redis-7 redisexperiment/redis-8 -n shop --require NotWorse

  # the table here, and a page with every run for those who review the change
  {name} compare no='no-*.json' always='always-*.json' --require NotWorse --report report.html

  # before it runs, without a cluster: is it valid, and can its repeats tell?
  {name} compare config/samples/experiment.yaml`

// compareFlags are the flags of `redquake compare`.
type compareFlags struct {
	cluster cluster.Flags
	output  string
	figures []string
	margins []string
	require string
	report  string

	notes []string // on where figures come from
}

// New returns the command compare. name is that of the program, as users call it.
func New(name string, io cli.Streams) *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:     "compare NAME=RUNS NAME=RUNS... | [EARLIER] EXPERIMENT [flags]",
		Short:   "Compare the figures of several runs, or the cells of an experiment",
		Long:    compareHelp,
		Example: strings.ReplaceAll(compareExamples, "{name}", name),
		Args:    compareArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			question, err := flags.question()
			if err != nil {
				return err
			}
			if flags.report != "" {
				if _, err := output.FormOf(flags.report); err != nil {
					return fmt.Errorf("--report: %w", err)
				}
			}
			if ofExperiments(args) {
				return flags.runExperiments(cmd.Context(), args, io)
			}
			return flags.run(cmd.Context(), args, question, io)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&flags.output, "output", "o", "text", "`format`: text, markdown or json")
	f.StringSliceVar(&flags.figures, "figure", nil,
		"`figure` to compare (default: chosen from the runs): "+strings.Join(figureNames(), ", "))
	f.StringSliceVar(&flags.margins, "margin", nil,
		"up to which difference a figure is the same, such as `throughput=5%`")
	f.StringVar(&flags.require, "require", "",
		"`what` must hold of each figure with a verdict, for exit code 0: None, NotWorse or Same "+
			"(default: None; of an experiment, what its spec requires)")
	f.StringVar(&flags.report, "report", "",
		"`file` to write the report of the comparison to: .html, .md, .json, .xml (JUnit), .csv or .txt")
	cli.Choices(cmd, "output", "text", "markdown", "json")
	cli.Lists(cmd, "figure", figureNames()...)
	cli.Choices(cmd, "require", string(compare.RequireNone), string(compare.RequireNotWorse),
		string(compare.RequireSame))
	var margins []string
	for _, of := range compare.Figures() {
		if !of.Counted {
			margins = append(margins, of.Name+"=")
		}
	}
	cli.Lists(cmd, "margin", margins...)
	flags.cluster.Register(f)
	return cmd
}

func figureNames() []string {
	var names []string
	for _, f := range compare.Figures() {
		names = append(names, f.Name)
	}
	return names
}

func figureNamed(name string) (compare.Figure, error) {
	for _, f := range compare.Figures() {
		if f.Name == name {
			return f, nil
		}
	}
	return compare.Figure{}, fmt.Errorf("%q is none of %s", name, strings.Join(figureNames(), ", "))
}

// question checks the flags.
func (f *compareFlags) question() (experiment.Question, error) {
	q := experiment.Question{Margins: map[string]compare.Margin{}}
	if !slices.Contains([]string{"text", "markdown", "json"}, f.output) {
		return q, fmt.Errorf("--output: %q is none of text, markdown and json", f.output)
	}
	if !slices.Contains([]compare.Require{
		"", compare.RequireNone, compare.RequireNotWorse,
		compare.RequireSame,
	}, compare.Require(f.require)) {
		return q, fmt.Errorf("--require: %q is none of None, NotWorse and Same", f.require)
	}
	for _, name := range f.figures {
		figure, err := figureNamed(name)
		if err != nil {
			return q, fmt.Errorf("--figure: %w", err)
		}
		if !slices.ContainsFunc(q.Primary, func(o compare.Figure) bool { return o.Name == name }) {
			q.Primary = append(q.Primary, figure)
		}
	}
	for _, text := range f.margins {
		name, share, _ := strings.Cut(text, "=")
		figure, err := figureNamed(name)
		if err != nil {
			return q, fmt.Errorf("--margin: %w", err)
		}
		if figure.Counted {
			return q, fmt.Errorf("--margin: %s has none: every lost write counts", name)
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
		if err != nil || !strings.HasSuffix(share, "%") || !(percent > 0 && percent <= 1000) {
			return q, fmt.Errorf(
				"--margin: %q must be a figure and a percentage above 0%% and up to 1000%%, such as %s=5%%",
				text, name)
		}
		q.Margins[name] = compare.Margin{Relative: percent / 100}
	}
	return q, nil
}

func (f *compareFlags) run(
	ctx context.Context, args []string, q experiment.Question, streams cli.Streams,
) error {
	cells, err := f.cells(ctx, args)
	if err != nil {
		return cli.AsFailure(err)
	}
	table := experiment.Table(cells, q)
	table.Notes = append(table.Notes, f.notes...)
	if err := f.write(streams, table); err != nil {
		return cli.AsFailure(err)
	}
	if err := f.writeReport(func() (*report.Document, error) {
		return matrix.New(study.Runs(cells, table, v1alpha1.ComparisonRequirement(f.require)))
	}); err != nil {
		return cli.AsFailure(err)
	}
	return f.judge(table)
}

// writeReport writes the report of the comparison, if one was asked for.
func (f *compareFlags) writeReport(of func() (*report.Document, error)) error {
	file, err := output.Open("--report", f.report)
	if err != nil || file == nil {
		return err
	}
	d, err := of()
	if err != nil {
		file.Discard()
		return err
	}
	return file.WriteReport(d)
}

func (f *compareFlags) write(streams cli.Streams, table *comparisons.Comparisons) error {
	switch f.output {
	case "json":
		return output.WriteJSON(streams.Out, table)
	case "markdown":
		return output.WriteComparisonsMarkdown(streams.Out, table)
	}
	return output.WriteComparisons(streams.Out, table)
}

// judge ends the command by what --require asks.
func (f *compareFlags) judge(table *comparisons.Comparisons) error {
	if f.require == "" || compare.Require(f.require) == compare.RequireNone {
		return nil
	}
	unknown := false
	for _, c := range table.Comparisons {
		met := c.NotWorse
		if compare.Require(f.require) == compare.RequireSame {
			met = c.Same
		}
		switch {
		case !c.Primary:
		case met == nil:
			unknown = true
		case !*met:
			return &cli.Failure{
				Code: cli.ExitFailed,
				Err: fmt.Errorf("--require %s is not met: %s of %s is %s", f.require, c.Figure, c.Cell,
					c.Verdict),
			}
		}
	}
	if unknown {
		return &cli.Failure{
			Code: cli.ExitInconclusive,
			Err:  fmt.Errorf("--require %s: these runs are inconclusive", f.require),
		}
	}
	return nil
}

// cells reads the runs of all arguments.
func (f *compareFlags) cells(ctx context.Context, args []string) ([]experiment.Cell, error) {
	var cells []experiment.Cell
	for _, arg := range args {
		name, of, named := strings.Cut(arg, "=")
		if !named || name == "" || of == "" {
			return nil, fmt.Errorf(
				"argument %q must be NAME=RUNS, such as before=before-1.json,before-2.json: runs are compared "+
					"by cells, each with a name", arg)
		}
		if redis.Printable(name, len(name)) != name {
			return nil, fmt.Errorf("argument %q: the name has characters that cannot be shown", arg)
		}
		if slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Name == name }) {
			return nil, fmt.Errorf("argument %q: there is a cell %s already; separate its runs by commas",
				arg, name)
		}
		cell := experiment.Cell{Name: name}
		for _, what := range strings.Split(of, ",") {
			runs, err := f.runs(ctx, what)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			cell.Runs = append(cell.Runs, runs...)
		}
		if err := distinct(cell.Runs); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(cell.Runs) > compare.MaxRepeats*2 {
			return nil, fmt.Errorf("%s: there are %d runs; at most %d can be compared", name, len(cell.Runs),
				compare.MaxRepeats*2)
		}
		cells = append(cells, cell)
	}
	if len(cells) > maxCells {
		return nil, fmt.Errorf("there are %d cells; at most %d can be compared", len(cells), maxCells)
	}
	return cells, nil
}

// maxCells is how many cells are compared at most.
const maxCells = 500
