package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/comparison"
	"github.com/redquake/redquake/cmd/redquake/internal/control"
	"github.com/redquake/redquake/cmd/redquake/internal/dryrun"
	"github.com/redquake/redquake/cmd/redquake/internal/fill"
	"github.com/redquake/redquake/cmd/redquake/internal/follow"
	"github.com/redquake/redquake/cmd/redquake/internal/load"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/cmd/redquake/internal/operator"
	"github.com/redquake/redquake/cmd/redquake/internal/reports"
	"github.com/redquake/redquake/internal/version"
)

// execute runs the command line in args, the program's name first, and returns the exit code.
// Where JSON was asked for, stdout always has a document.
func execute(ctx context.Context, args []string, io cli.Streams) int {
	var document *jsonOutput
	if wantsJSON(args[1:]) {
		document = &jsonOutput{Writer: io.Out}
		io.Out = document
	}
	root := newRoot(args[0], io)
	root.SetArgs(translated(args[1:]))
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cli.ExitOK
	}
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		if f.Err != nil {
			fmt.Fprintf(io.Err, "%s: %s\n", called.CommandPath(), withoutLogins(f.Err))
			document.fail(f.Err)
		}
		return f.Code
	}
	// All other errors are from cobra or from reading flags and files.
	fmt.Fprintf(io.Err, "%s: %s\nSee '%s --help'.\n", called.CommandPath(), withoutLogins(err),
		called.CommandPath())
	document.fail(err)
	return cli.ExitError
}

// translated are arguments in which those of other programs are those of load.
func translated(args []string) []string {
	if len(args) > 0 && args[0] == "load" {
		return loadflags.FromOthers(args)
	}
	return args
}

// login is the user and the password of an URI of Redis.
var login = regexp.MustCompile(`((?:redis|valkey)s?://)[^\s"]*@`)

// withoutLogins is the text of an error, which may repeat an argument.
func withoutLogins(err error) string {
	return login.ReplaceAllString(err.Error(), "$1")
}

// newRoot returns the command tree. program is the name by which the process was called.
func newRoot(program string, io cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "redquake",
		Short: "Load Redis and measure the effect of failures on its clients",
		Long: `Load Redis and measure the effect of failures on its clients.

Exit codes:
  0    success; of a load, a run or an experiment: its verdict is Pass
  1    of a load, a run or an experiment: its verdict is Fail
  2    of a load, a run or an experiment: its verdict is Inconclusive
  3    an error, such as an invalid flag, a Redis that cannot be reached, or a missing permission
  130  interrupted; of a load the result until then was written, a run was aborted and reverted`,
		Version:       version.Of("redquake"),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// The help of a kubectl plugin shows the command as users call it.
	if strings.HasPrefix(filepath.Base(program), "kubectl-redquake") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl redquake"}
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(ofFlag)
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	name := root.DisplayName()
	root.AddCommand(
		load.NewAgent(io), comparison.New(name, io), operator.NewDashboard(name, io),
		fill.New(io), operator.NewDoctor(name, io), load.New(name, io), control.NewMark(name, io), dryrun.New(name, io),
		reports.NewReport(name, io),
		follow.NewRerun(name, io), reports.NewResults(name, io), follow.NewRun(name, io),
		control.NewStop(name, io), newVersion(io), follow.NewWatch(name, io),
	)
	return root
}
