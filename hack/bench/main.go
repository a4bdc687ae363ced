// Command bench measures what Redquake costs: its load generator compared with other tools, the
// operator's collection from many load pods, and the manager on a large cluster.
//
//	go run ./hack/bench [run]      load generators side by side, a core each for them and
//	                               redis-server -> build/bench.json, build/bench-ratios.json
//	go run ./hack/bench cost       what a load costs, by its rate -> build/bench-cost.json
//	go run ./hack/bench collect    the operator's side of many load pods -> build/bench-collect.json
//	go run ./hack/bench scale      the manager on a large cluster -> build/bench-scale.json
//	go run ./hack/bench docs       write the results in build/ into docs/benchmarks.md, docs/sizing.md
//
// run, cost, collect and scale also write the docs. The command is run from the repository's root, by
// `make bench`, `make bench-cost`, `make bench-collect` and `make bench-scale`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// SIGTERM, too: the servers and agents that were started must be stopped.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	name := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	switch name {
	case "run":
		return runBench(ctx, args)
	case "cost":
		return runCost(ctx, args)
	case "collect":
		return runCollect(ctx, args)
	case "scale":
		return runScale(ctx, args)
	case "docs":
		return writeDocs()
	// a separate process, so that its CPU time can be distinguished from this one's
	case goRedisCommand:
		return runGoRedis(ctx, args)
	case floorCommand:
		return runFloor(ctx, args)
	case agentsCommand: // likewise
		return runAgents(ctx, args)
	}
	return fmt.Errorf("%q is none of run, cost, collect, scale, docs", name)
}
