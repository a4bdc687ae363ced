// Package load runs the load engine in this process: as the command load, and as the agent of a
// load pod.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// New returns the command load. name is that of the program, as users call it.
func New(name string, io cli.Streams) *cobra.Command {
	var flags loadflags.Flags
	cmd := &cobra.Command{
		Use:     "load [ADDRESS] [-f FILE] [flags]",
		Short:   "Load a Redis from this machine and write what was measured",
		Long:    loadHelp,
		Example: strings.ReplaceAll(loadExamples, "{name}", name),
		Args:    oneAddress,
		RunE: func(cmd *cobra.Command, args []string) error {
			cli.CollectLater()
			flags.Argument(args)
			if err := flags.Check(); err != nil {
				return err
			}
			test, err := flags.LoadTest(io)
			if err != nil {
				return err
			}
			limits, err := limitsOf(&flags, &test.Spec)
			if err != nil {
				return err
			}
			plan, notes, err := flags.Plan(test)
			if err != nil {
				return err
			}
			runner, err := engine.New(plan, 0, flags.Options()...)
			if err != nil {
				return flags.Named(err)
			}
			to, err := open(&flags)
			if err != nil {
				return err
			}
			cli.OutliveReaders()
			if flags.Quiet {
				io.Err = quiet
			}
			return runLoad(cmd.Context(), watched(runner), plan, limits, notes, to, io)
		},
	}
	flags.Register(cmd.Flags())
	loadflags.Complete(cmd)
	loadflags.Group(cmd)
	return cmd
}

// coarsenAfter is the number of intervals after which the record is coarsened, so that that of a
// load of days fits into memory: at 100 ms, three hours.
const coarsenAfter = 108_000

// quiet is where progress goes that nobody wants.
var quiet = io.Discard

// oneAddress allows an address as the argument. Its error repeats no argument, as an URI may have a
// password.
func oneAddress(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New(
			"only one argument, the address of Redis, is possible; a command is that of --command")
	}
	return nil
}

// limits are what the figures must meet.
type limits struct {
	objectives *v1alpha1.Objectives
	success    loadflags.Success
}

func limitsOf(f *loadflags.Flags, spec *v1alpha1.RedisLoadTestSpec) (limits, error) {
	success, err := f.Success(spec)
	return limits{spec.Objectives, success}, err
}

// resultTo is how the result is written, and where record and report are.
type resultTo struct {
	format         string // text | json
	record, report *output.File
	hdr            *output.File
}

// discard removes what was created, and is empty.
func (to *resultTo) discard() {
	to.record.Discard()
	to.report.Discard()
	to.hdr.Discard()
}

// open opens the files that the load writes.
func open(f *loadflags.Flags) (to resultTo, err error) {
	to.format = f.Output
	if f.Report != "" {
		if _, err := output.FormOf(f.Report); err != nil {
			return to, fmt.Errorf("--report: %w", err)
		}
	}
	if to.record, err = output.Open("--record", f.Record); err != nil {
		return to, err
	}
	if to.report, err = output.Open("--report", f.Report); err != nil {
		to.discard()
		return to, err
	}
	if to.hdr, err = output.Open("--hdr", f.HDR); err != nil {
		to.discard()
	}
	return to, err
}

// unfinished is the doubt about a load that did not run to its end. It explains others, such as too
// few requests.
func unfinished(load *result.Load) impact.Doubt {
	return impact.Doubt{
		Reason:  string(load.Outcome),
		Message: "the load did not run to its end: " + load.Message,
	}
}

// runLoad runs the whole load in this process and writes the result.
func runLoad(
	ctx context.Context, runner watchedRunner, plan *plan.Plan, limits limits, notes []string,
	to resultTo, io cli.Streams,
) error {
	defer to.discard()
	progress := newProgress(io.Err, plan)
	if err := runner.Prepare(ctx, progress.show); err != nil {
		progress.done()
		if ctx.Err() != nil {
			return &cli.Failure{
				Code: cli.ExitInterrupted,
				Err:  errors.New("interrupted before the start of the load"),
			}
		}
		return cli.AsFailure(err)
	}

	cli.CollectAsUsual()
	start := time.Now()
	series := merged.New(plan.Run, start, plan.Interval, plan.Operations(), plan.Pods)
	series.SetTallies(plan.Tallies())
	series.SetReadOnly(plan.ReadOnly())
	var unrecorded error
	runCtx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	searching := newConductor(plan, limits.objectives, runner.Step, progress.note, giveUp)
	runErr := runner.Run(runCtx, start, func(iv *record.Interval) {
		if err := series.Add(0, iv); err != nil {
			unrecorded = errors.Join(unrecorded, err)
			return
		}
		if iv.Index%coarsenAfter == coarsenAfter-1 {
			series.Coarsen("the record fits into memory")
		}
		progress.interval(iv, series)
		searching.interval(series, time.Duration(iv.Index+1)*plan.Interval, time.Since(start))
	})
	progress.done()
	series.Finish(0)
	if unrecorded != nil {
		return cli.AsFailure(fmt.Errorf("record the load: %w", unrecorded))
	}

	outcome, message := outcomeOf(ctx, runErr)
	load := result.NewLoad(plan, series, result.LoadInput{
		Outcome: outcome,
		Message: message,
		Search:  searching.outcome(),
		Layout:  runner.Layout(),
		Named:   runner.Named(),
		Notes:   runner.Notes(),
		Before:  runner.Server(),
	})
	load.Notes = append(notes, load.Notes...)
	load.Sample(runner.ErrorSamples())
	load.Guaranteed(runner.Guarantees())
	if plan.Verify != nil {
		load.Verified(verify(ctx, runner.Runner, progress.show, runErr))
		progress.done()
	}
	load.Notes = append(load.Notes, left(ctx, runner.Runner, plan, progress)...)
	if load.Outcome != result.Finished && runErr != nil {
		load.Doubts = slices.Insert(load.Doubts, 0, unfinished(load)) // the head of the report says it
	}
	verdict.Load(limits.objectives, load, limits.success.Objectives(load)...)
	loadflags.Advise(load)
	if err := document.Keep(load, series); err != nil {
		return cli.AsFailure(err)
	}
	document := reportOf(load, series)
	err := errors.Join(writeLoadRun(load, document, to.format, io.Out),
		to.record.WriteRecord(series), to.report.WriteReport(document),
		to.hdr.WriteHDR(series, plan.Shape.MeasuredFrom()))
	if err != nil {
		return cli.AsFailure(err)
	}
	return exitOf(load)
}

// left removes the keys of the load if the plan says so, and says which keys are left.
func left(
	ctx context.Context, runner *engine.Runner, p *plan.Plan, progress *progress,
) (notes []string) {
	if !p.Workload.Keyspace.Cleanup {
		if text := p.Workload.Left(); text != "" {
			notes = append(notes, text)
		}
		return notes
	}
	removed, err := runner.CleanUp(ctx, progress.show)
	progress.done()
	_, others := p.Workload.Creates()
	if len(others) > 0 {
		notes = append(notes,
			"keys may be left that are no part of the cleanup: "+strings.Join(others, ", "))
	}
	if err != nil {
		return append(notes,
			fmt.Sprintf("%d keys of this load were removed, others may be left: %v", removed, err))
	}
	return append(notes, fmt.Sprintf("%d keys of this load were removed after it", removed))
}

func outcomeOf(ctx context.Context, runErr error) (outcome result.Outcome, message string) {
	switch {
	case runErr == nil:
		return result.Finished, ""
	case ctx.Err() != nil:
		return result.Interrupted, "the figures are valid until then"
	}
	return result.Failed, runErr.Error()
}

// verify reads the ledger of acknowledged writes back, unless the load failed.
func verify(
	ctx context.Context, runner *engine.Runner, progress func(string), runErr error,
) *record.Ledger {
	if runErr != nil {
		return &record.Ledger{Unread: "the load did not finish"}
	}
	result, err := runner.Verify(ctx, progress)
	switch {
	case ctx.Err() != nil:
		return &record.Ledger{Unread: "it was interrupted"}
	case err != nil:
		return &record.Ledger{Unread: err.Error()}
	}
	return result
}

func writeLoadRun(
	load *result.Load, document *report.Document, format string, out io.Writer,
) error {
	if format == "json" {
		return output.WriteJSON(out, load)
	}
	return report.WriteText(out, run.Short(document))
}

// exitOf returns nil for the verdict Pass, otherwise the exit code. The result already contains the
// reason.
func exitOf(load *result.Load) error {
	switch {
	case load.Outcome == result.Interrupted:
		return &cli.Failure{Code: cli.ExitInterrupted}
	case load.Verdict == string(v1alpha1.VerdictPass):
		return nil
	case load.Verdict == string(v1alpha1.VerdictFail):
		return &cli.Failure{Code: cli.ExitFailed}
	}
	return &cli.Failure{Code: cli.ExitInconclusive}
}
