package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where results are kept, from the repository's root.
const (
	benchFile        = "build/bench.json"
	benchRatiosFile  = "build/bench-ratios.json"
	benchMachineFile = "build/bench-machine.json"
)

// attempts is how often a case of a round is measured before the machine is too busy.
const attempts = 5

// options are the flags of `bench run`.
type options struct {
	rounds, single, piped int
	redquake, unbounded   string
	memtier               string
	only, cases           string
	ledgerArgs, offArgs   string
	seed                  uint64
	allowBusy             bool
}

func (o *options) parse(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 7,
		"how often each tool runs each case; intervals need at least 6")
	flags.IntVar(&o.single, "requests", 400_000, "requests of a run without a pipeline")
	flags.IntVar(&o.piped, "pipelined-requests", 2_000_000, "requests of a run with one")
	flags.StringVar(&o.redquake, "redquake", "bin/redquake", "the program to measure")
	flags.StringVar(&o.unbounded, "unbounded", "bin/redquake-nobounds",
		"the same, built with the tag nobounds")
	flags.StringVar(&o.memtier, "memtier", "memtier_benchmark",
		"the program to compare it with, a release build")
	flags.StringVar(&o.only, "tools", "",
		"only tools whose name contains one of these, separated by commas")
	flags.StringVar(&o.cases, "cases", "",
		"only cases whose name is or contains one of these, separated by semicolons")
	flags.StringVar(&o.ledgerArgs, "ledger-args", "--verify-writes --verify-share 1%",
		"flags of redquake load that switch the ledger on at 1 %")
	flags.StringVar(&o.offArgs, "off-args", "--no-record",
		"flags of redquake load that switch the recording off")
	flags.Uint64Var(&o.seed, "seed", 1, "of the order in which cases and tools run")
	flags.BoolVar(&o.allowBusy, "allow-busy", false,
		"measure although others use the cores under test; docs/benchmarks.md says so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.rounds < 1 || o.single < 1000 || o.piped < 1000 {
		return errors.New("at least 1 round of 1000 requests is needed")
	}
	return nil
}

// bench is a run of `bench run`.
type bench struct {
	options options
	cores   cores
	watcher watcher
	tools   []tool
	order   *rand.Rand
	machine machine
	runs    map[string]map[string][]run // by case and tool, in the order of rounds
}

// run is one tool's run.
type run struct {
	figures
	cpuMicros float64 // per request
	threads   int
}

func runBench(ctx context.Context, args []string) error {
	b := bench{machine: describeMachine(), runs: map[string]map[string][]run{}}
	if err := b.options.parse(args); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	cases := matching(allCases(b.options.single, b.options.piped), b.options.cases)
	if len(cases) == 0 || len(b.tools) == 0 {
		return errors.New("no case or no tool is left")
	}
	for round := range b.options.rounds {
		for _, i := range b.order.Perm(len(cases)) {
			if err := b.measure(ctx, cases[i], round); err != nil {
				return fmt.Errorf("%s, round %d: %w", cases[i].name, round+1, err)
			}
		}
	}
	limits, err := readLimits()
	if err != nil {
		return err
	}
	results, ratios := b.results(cases)
	table, beyond, unknown := limitTable(limits, results, ratios)
	fmt.Print(benchTables(results), "\n", ratioTable(ratios), "\n", table)
	err = errors.Join(writeJSON(benchFile, results), writeJSON(benchRatiosFile, ratios),
		writeJSON(benchMachineFile, b.machine))
	if err == nil {
		err = writeDocs()
	}
	if b.options.only+b.options.cases != "" {
		unknown = 0
	}
	if err == nil && beyond+unknown > 0 {
		err = fmt.Errorf("of the limits of hack/bench/limits.yaml %d are missed and %d were not measured", beyond, unknown)
	}
	return err
}

// prepare chooses cores and tools.
func (b *bench) prepare(ctx context.Context) error {
	allowed, err := allowedCores()
	if err != nil {
		return err
	}
	if b.cores, err = chooseCores(allowed, siblingsOf); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	b.watcher = newWatcher(b.cores)
	b.order = rand.New(rand.NewPCG(b.options.seed, 0))
	b.machine.Placement, b.machine.AllowBusy = b.cores.String(), b.options.allowBusy
	for _, t := range tools(ctx, own, &b.options) {
		if !wanted(t.name, b.options.only) {
			continue
		}
		if t.missing != "" {
			fmt.Printf("%s is left out: %s\n", t.name, t.missing)
			b.machine.LeftOut = append(b.machine.LeftOut, t.name+": "+t.missing)
			continue
		}
		b.machine.Tools = append(b.machine.Tools, t.name+": "+t.version)
		b.tools = append(b.tools, t)
	}
	return nil
}

// measure adds one run of each tool in a case.
func (b *bench) measure(ctx context.Context, w work, round int) error {
	list := slices.DeleteFunc(slices.Clone(b.tools), func(t tool) bool { return !t.can(&w) })
	runs, err := b.repeat(ctx, w, list, fmt.Sprintf("round %d of %d", round+1, b.options.rounds))
	if err != nil {
		return err
	}
	of := b.runs[w.name]
	if of == nil {
		of = map[string][]run{}
		b.runs[w.name] = of
	}
	for _, t := range list {
		of[t.name] = append(of[t.name], runs[t.name])
	}
	return nil
}

// repeat runs each tool once, by name. It does so again if others used the cores meanwhile: a
// disturbed run is not compared with an undisturbed one.
func (b *bench) repeat(
	ctx context.Context, w work, list []tool, title string,
) (map[string]run, error) {
	var failed error
	for range attempts {
		runs, used, err := b.once(ctx, w, list)
		disturbed := used.share() > busyLimit
		if err != nil && !disturbed || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		fmt.Printf("%s, %s:", title, w.name)
		for _, t := range list {
			if r, ok := runs[t.name]; ok {
				fmt.Printf("  %s %.2f us", t.name, r.cpuMicros)
			}
		}
		if err == nil && (!disturbed || b.options.allowBusy) {
			fmt.Printf("  (%s)\n", used.String())
			b.machine.Others = append(b.machine.Others, used.share())
			return runs, nil
		}
		failed = busyError(used)
		if err != nil {
			failed = fmt.Errorf("%w; meanwhile %s", err, used.String())
		}
		fmt.Printf("  thrown away: %v\n", failed)
		b.machine.ThrownAway++
	}
	return nil, failed
}

// once runs each tool in a random order against servers of its own, once these are there and the
// machine is quiet. It also returns what others used during the tools' runs.
func (b *bench) once(ctx context.Context, w work, list []tool) (map[string]run, others, error) {
	var used others
	d, err := deploy(ctx, &w, b.cores)
	if err != nil {
		return nil, used, err
	}
	defer d.stop()
	if !b.options.allowBusy {
		if err := b.watcher.waitQuiet(ctx, d.pids); err != nil {
			return nil, used, err
		}
	}
	runs := map[string]run{}
	for _, i := range b.order.Perm(len(list)) {
		t := &list[i]
		r, meanwhile, err := b.runTool(ctx, d, &w, t)
		used.add(meanwhile)
		if err != nil {
			return runs, used, fmt.Errorf("%s: %w", t.name, err)
		}
		runs[t.name] = r
	}
	return runs, used, nil
}

// runTool runs one tool as a process on newly set keys, and reads the process's CPU time from the
// kernel.
func (b *bench) runTool(
	ctx context.Context, d *deployment, w *work, t *tool,
) (r run, used others, err error) {
	if err := d.fill(ctx, t.keys, t.firstKey, w.valueBytes); err != nil {
		return r, used, err
	}
	missesBefore, err := d.misses(ctx)
	if err != nil {
		return r, used, err
	}
	args := t.args(w)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	used, err = b.watcher.during(d.pids, func() error {
		r.threads, err = runOn(b.cores.tool, cmd)
		return err
	})
	// `redquake load` also exits with an error if the load generator was the bottleneck, as intended
	// here
	if err != nil && stdout.Len() == 0 {
		return r, used, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	if r.figures, err = t.read(w, stdout.Bytes()); err != nil {
		return r, used, err
	}
	misses, err := d.misses(ctx)
	switch {
	case err != nil:
		return r, used, err
	case r.requests != w.requests:
		return r, used, fmt.Errorf("%d requests were made, not %d", r.requests, w.requests)
	case w.get && misses > missesBefore:
		return r, used, fmt.Errorf("%d GETs of missing keys", misses-missesBefore)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.cpuMicros = float64(cpu) / float64(time.Microsecond) / float64(r.requests)
	return r, used, nil
}

// runOn runs a command on a core to its end, and returns the most threads that it was observed to
// have.
func runOn(core int, cmd *exec.Cmd) (threads int, err error) {
	if err := onCore(core, cmd.Start); err != nil {
		return 0, err
	}
	stop, most := make(chan struct{}), make(chan int)
	go func() { most <- countThreads(cmd.Process.Pid, stop) }()
	err = cmd.Wait()
	close(stop)
	return <-most, err
}

// countThreads returns the most threads that a process was observed to have until stop is closed,
// at no cost for the process.
func countThreads(pid int, stop <-chan struct{}) int {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	most := 0
	for {
		if tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task")); err == nil {
			most = max(most, len(tasks))
		}
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}
