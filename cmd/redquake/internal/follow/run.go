// Package follow has the commands that follow objects in a cluster to their verdict: run and rerun,
// which create them, and watch.
package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/output"
)

const runHelp = `Create the objects of files in the cluster, show what happens, and end with the verdict.

Objects of redquake.dev and others may be in the same files. First the API server checks those of
redquake.dev by a dry run, so that a fault that it refuses leaves no load behind; its sentence is
shown as it is, and names the field, the admission policy or the missing permission. Then what else
there is, such as a Redis, is applied, and its StatefulSets and Deployments must become ready, and
its Jobs complete, within 5 minutes. Load tests are created before the faults on them.

On a terminal there is a page with throughput and latency as they move, the instants of the faults,
and their timelines. Elsewhere, and with --plain, there is a line for whatever changes, on standard
error. The results are written to standard output.

A RedisExperimentSchedule is refused, as it never ends: create it by kubectl apply, and watch its
runs.

An object runs once. If one of the same name is over, nothing is created; --rerun creates it under a
new name. If one is under way, it is followed.

Ctrl-C aborts what was created (spec.abort) and waits until everything is reverted. A second one
leaves at once, says what is still to be reverted, and how to watch that: the operator reverts it in
any case. After --timeout the same happens.

Exit codes:
  0    every object is complete, and every verdict is Pass
  1    a verdict is Fail
  2    a verdict is Inconclusive
  3    an object has failed or was not created, or --timeout has passed
  130  Ctrl-C`

const runExamples = `  # a small Redis, a load, and the kill of its pod once the load is steady
  {name} run -f config/samples/pod-kill-when-steady.yaml

  # a load test and a fault, in another namespace, with an end whatever happens
  {name} run -f config/samples/loadtest.yaml -f config/samples/podkill.yaml -n shop --timeout 15m

  # again, under new names
  {name} run -f config/samples/loadtest.yaml -f config/samples/podkill.yaml -n shop --rerun

  # in a pipeline, from kustomize, with a report for people, and one for the list of tests
  kubectl kustomize tests/ | {name} run -f - --plain --report report.html
  {name} report checkout-cache -o junit > junit.xml`

// runFlags are the flags of `redquake run`.
type runFlags struct {
	cluster cluster.Flags
	files   []string
	report  string
	plain   bool
	rerun   bool
	timeout time.Duration
}

// NewRun returns the command run. name is that of the program, as users call it.
func NewRun(name string, io cli.Streams) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:     "run -f FILE... [flags]",
		Short:   "Run load tests, faults and experiments in the cluster, to their verdict",
		Long:    runHelp,
		Example: strings.ReplaceAll(runExamples, "{name}", name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.timeout < 0 {
				return errors.New("--timeout: must not be negative")
			}
			all, err := written.Read(flags.files, io.In)
			if err != nil {
				return err
			}
			if err := refuseSchedules(all, name); err != nil {
				return err
			}
			cli.OutliveReaders()
			report, err := openRunReport(flags.report, all)
			if err != nil {
				return err
			}
			defer report.Discard()
			return cli.AsFailure(flags.run(context.WithoutCancel(cmd.Context()), name, all, report, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&flags.files, "file", "f", nil,
		"`file` with objects, - for standard input; repeatable")
	f.StringVar(&flags.report, "report", "",
		"`file` to write the report of the load test or the experiment to: .html, .md, .json, .xml (JUnit), .csv or .txt")
	f.BoolVar(&flags.rerun, "rerun", false, "create objects that are over again, under new names")
	f.BoolVar(&flags.plain, "plain", false, "lines of text instead of a page, on a terminal as well")
	f.DurationVar(&flags.timeout, "timeout", 0,
		"`time` after which everything is aborted (default: none)")
	flags.cluster.Register(f)
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// refuseSchedules returns an error if a schedule is among objects: it never ends, so that nothing
// could be created beside it and followed to a verdict.
func refuseSchedules(all []*written.Object, name string) error {
	i := slices.IndexFunc(all, func(w *written.Object) bool { return w.Kind == kube.Schedule })
	if i < 0 {
		return nil
	}
	return fmt.Errorf(
		"--file: %s: %s never ends: create it by kubectl apply, and follow a run of it, which is a "+
			"RedisExperiment, by %s watch redisexperiment/RUN",
		all[i].File, all[i].Ref(), name)
}

func (f *runFlags) run(
	ctx context.Context, name string, all []*written.Object, report *output.File, io cli.Streams,
) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	stop, release := interruption()
	c := &creator{
		client: client,
		notes:  io.Err,
		name:   name,
		rerun:  f.rerun,
		stop:   stop,
	}
	made, err := c.create(ctx, all)
	release()
	if err != nil {
		return err
	}
	err = followToTheEnd(ctx, client, made, stop, name, f.timeout, f.plain, io)
	failed := writeReport(ctx, &f.cluster, report, made)
	if failed != nil {
		return errors.Join(failed, err)
	}
	if report != nil {
		fmt.Fprintf(io.Err, "The report is in %s.\n", f.report)
	}
	return err
}

// followToTheEnd shows objects until they are over, writes their results, and returns the exit
// code. interrupted is closed if there was a Ctrl-C before.
func followToTheEnd(
	ctx context.Context, client *kube.Client, made []*kube.Object, interrupted <-chan struct{},
	name string, timeout time.Duration, plain bool, io cli.Streams,
) error {
	follower, stop := newFollower(client, made, io, false, plain, hintRun)
	select {
	case <-interrupted:
		put(follower.ctrlC)
	default:
	}
	end, err := follower.follow(ctx, timeout, true)
	if shown := stop(); shown != nil {
		err = errors.Join(err, fmt.Errorf("show the page: %w", shown))
	}
	err = errors.Join(err, output.WriteEnds(io.Out, end.objects, end.shown))
	left := unreverted(end.objects, client.Namespace, name)
	if left != "" {
		fmt.Fprint(io.Err, left)
	}
	switch {
	case err != nil:
		return err
	case end.timedOut:
		return fmt.Errorf("the timeout of %s has passed: aborted", timeout)
	case end.aborted || end.left:
		return &cli.Failure{Code: cli.ExitInterrupted}
	}
	return exitOfObjects(end.objects)
}

// exitOfObjects is nil if all verdicts are Pass, else the exit code of the worst: a verdict Fail is
// certain, whatever else there is.
func exitOfObjects(objects []*kube.Object) error {
	code := cli.ExitOK
	for _, o := range objects {
		switch {
		case o.Verdict() == v1alpha1.VerdictFail:
			return &cli.Failure{Code: cli.ExitFailed}
		case o.Verdict() == "" || o.Failed() || len(o.Unreverted()) > 0:
			code = cli.ExitError
		case o.Verdict() != v1alpha1.VerdictPass:
			code = max(code, cli.ExitInconclusive)
		}
	}
	if code == cli.ExitOK {
		return nil
	}
	return &cli.Failure{Code: code}
}
