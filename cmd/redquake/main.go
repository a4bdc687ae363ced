// The command redquake: the load agent of the load pods, and load tests from a terminal. Called as kubectl-redquake it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
