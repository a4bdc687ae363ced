// Command redquake is the agent of the load pods, and runs load tests from a terminal. Named
// kubectl-redquake it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), cli.Interrupts()...)
	// A second signal ends the process immediately, but for SIGHUP: a terminal that is closed sends
	// several.
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	os.Exit(execute(ctx, os.Args, cli.Streams{
		In:  os.Stdin,
		Out: os.Stdout,
		Err: os.Stderr,
	}))
}
