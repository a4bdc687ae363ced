package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/output"
)

const watchHelp = `Show load tests, faults and experiments in the cluster while they move, until they are over.

NAME is an object of one of the three kinds, also as KIND/NAME: redisloadtest/checkout-cache,
rfault/kill-primary, rexp/fsync. With a load test its faults are shown, with a fault its load test,
with an experiment the run that is under way. A schedule never ends: watch one of its runs, which
are experiments.

On a terminal there is a page: throughput and p99 over time, each column with the worst second of
its time; the instants of the faults; their timelines, and after recovery its phases. The record of
a load is stored every 10 s; the last columns are from the status, every 2 s, and have no p99 yet.
Elsewhere, and with --plain, there is a line for whatever changes.

The watch goes on when the API server was away. It changes nothing: leaving it by q or Ctrl-C does
not end the run.

Exit codes: as those of run; 130 if it was left before the end.`

const watchExamples = `  # a load test and the faults on it
  {name} watch checkout-cache -n shop

  # two objects, as lines, into a file
  {name} watch redisloadtest/checkout-cache redisfault/kill-primary -n shop --plain > run.log`

// watchFlags are the flags of `redquake watch`.
type watchFlags struct {
	cluster cluster.Flags
	plain   bool
	timeout time.Duration
}

// NewWatch returns the command watch. name is that of the program, as users call it.
func NewWatch(name string, io cli.Streams) *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:     "watch NAME... [flags]",
		Short:   "Show a run in the cluster while it moves",
		Long:    watchHelp,
		Example: strings.ReplaceAll(watchExamples, "{name}", name),
		Args:    cli.Some("what runs, as redisloadtest/checkout-cache"),
		ValidArgsFunction: flags.cluster.Names(func(o *kube.Object) bool { return !o.IsSchedule() },
			kube.AllKinds...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.timeout < 0 {
				return errors.New("--timeout: must not be negative")
			}
			return cli.AsFailure(flags.run(context.WithoutCancel(cmd.Context()), args, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&flags.plain, "plain", false, "lines of text instead of a page, on a terminal as well")
	f.DurationVar(&flags.timeout, "timeout", 0, "`time` after which the watch ends (default: none)")
	flags.cluster.Register(f)
	return cmd
}

func (f *watchFlags) run(ctx context.Context, args []string, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	var all []*kube.Object
	for _, arg := range args {
		o, err := client.Find(ctx, arg, kube.AllKinds...)
		if err != nil {
			return err
		}
		if o.IsSchedule() {
			return fmt.Errorf("%s is a schedule, which never ends: watch one of its runs%s", o.Ref(),
				kube.SuchAs(cmp.Or(o.Schedule.Status.Active, kube.LastRun(o.Schedule))))
		}
		all = append(all, o)
	}
	follower, stop := newFollower(client, all, io, true, f.plain, hintWatch)
	end, err := follower.follow(ctx, f.timeout, false)
	if shown := stop(); shown != nil {
		err = errors.Join(err, fmt.Errorf("show the page: %w", shown))
	}
	err = errors.Join(err, output.WriteEnds(io.Out, end.objects, end.shown))
	switch {
	case err != nil:
		return err
	case end.timedOut:
		return fmt.Errorf("the timeout of %s has passed; the run goes on", f.timeout)
	case end.left:
		return &cli.Failure{Code: cli.ExitInterrupted}
	}
	return exitOfObjects(end.objects)
}
