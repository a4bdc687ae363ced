package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
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
	benchMachineFile = "build/bench-machine.json"
)

// result is one tool in one case: medians over the rounds. The first six fields are a contract.
type result struct {
	Case              string  `json:"case"` // "SET, pipeline 1"
	Tool              string  `json:"tool"`
	CPUMicros         float64 `json:"cpuMicrosPerRequest"` // user and system time of the whole process, its start included
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	P50Micros         float64 `json:"p50Micros"` // 0 = not reported by the tool
	P99Micros         float64 `json:"p99Micros"`

	Rounds       int     `json:"rounds"`
	Requests     int     `json:"requests"` // per round
	CPUMicrosMin float64 `json:"cpuMicrosMin"`
	CPUMicrosMax float64 `json:"cpuMicrosMax"`
	Threads      int     `json:"threads"` // the most that were observed at once
}

// run is one tool's run.
type run struct {
	figures
	cpuMicros float64 // per request
	threads   int
}

func runBench(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "how often each tool runs each case, in turn with the others")
	single := flags.Int("requests", 1_000_000, "requests of a run without a pipeline")
	piped := flags.Int("pipelined-requests", 5_000_000, "requests of a run with one")
	program := flags.String("redquake", "bin/redquake", "the program to measure")
	only := flags.String("tools", "", "only tools whose name contains one of these, separated by commas")
	ledgerArgs := flags.String("ledger-args", "--verify-writes --verify-share 1%", "flags of redquake load that switch the ledger on at 1 %")
	offArgs := flags.String("off-args", "--no-record", "flags of redquake load that switch the recording off")
	if err := flags.Parse(args); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	server, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	var present []tool
	machine := describeMachine()
	for _, t := range tools(ctx, *program, own, *ledgerArgs, *offArgs) {
		if !wanted(t.name, *only) {
			continue
		}
		if t.missing != "" {
			fmt.Printf("%s is left out: %s\n", t.name, t.missing)
			machine.LeftOut = append(machine.LeftOut, t.name+": "+t.missing)
			continue
		}
		machine.Tools = append(machine.Tools, t.name+": "+t.version)
		present = append(present, t)
	}
	var results []result
	for _, pipeline := range []int{1, 16} {
		for _, get := range []bool{false, true} {
			l := work{get: get, pipeline: pipeline, requests: *single, address: server.address, port: server.port, folder: server.folder}
			if pipeline > 1 {
				l.requests = *piped
			}
			l.requests -= l.requests % (connections * pipeline) // memtier counts per connection, and all tools send the same
			some, err := measure(ctx, server, l, present, *rounds)
			if err != nil {
				return err
			}
			results = append(results, some...)
		}
	}
	if err := errors.Join(writeJSON(benchFile, results), writeJSON(benchMachineFile, machine)); err != nil {
		return err
	}
	return writeDocs()
}

func wanted(name, only string) bool {
	return only == "" || slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(name, part) })
}

// measure runs one case: every tool in turn, round by round, so that other work of the machine affects all of them equally.
func measure(ctx context.Context, server *server, l work, list []tool, rounds int) ([]result, error) {
	name := caseName(l)
	fmt.Printf("\n%s, %d requests, %d rounds\n", name, l.requests, rounds)
	runs := make([][]run, len(list))
	for round := range rounds {
		for i := range list {
			// Another tool begins each round, so that none always follows the same one.
			k := (i + round) % len(list)
			r, err := once(ctx, server, l, &list[k])
			if err != nil {
				return nil, fmt.Errorf("%s, round %d, %s: %w", name, round+1, list[k].name, err)
			}
			runs[k] = append(runs[k], r)
		}
		fmt.Printf("  round %d:", round+1)
		for k := range list {
			fmt.Printf("  %s %.2f us", list[k].name, runs[k][round].cpuMicros)
		}
		fmt.Println()
	}
	results := make([]result, len(list))
	for k := range list {
		of := func(f func(*run) float64) []float64 {
			values := make([]float64, len(runs[k]))
			for i := range runs[k] {
				values[i] = f(&runs[k][i])
			}
			return values
		}
		cpu := of(func(r *run) float64 { return r.cpuMicros })
		results[k] = result{
			Case: name, Tool: list[k].name, Rounds: rounds, Requests: l.requests,
			CPUMicros: median(cpu), CPUMicrosMin: slices.Min(cpu), CPUMicrosMax: slices.Max(cpu),
			RequestsPerSecond: median(of(func(r *run) float64 { return r.perSecond })),
			P50Micros:         median(of(func(r *run) float64 { return r.p50 })),
			P99Micros:         median(of(func(r *run) float64 { return r.p99 })),
			Threads:           int(slices.Max(of(func(r *run) float64 { return float64(r.threads) }))),
		}
	}
	fmt.Print(benchTable(results))
	return results, nil
}

func caseName(l work) string {
	command := "SET"
	if l.get {
		command = "GET"
	}
	return command + ", pipeline " + strconv.Itoa(l.pipeline)
}

// once runs one tool as a process on newly set keys, and reads the process's CPU time from the kernel.
func once(ctx context.Context, server *server, l work, t *tool) (run, error) {
	if err := server.fill(t.keys, t.firstKey, keys, valueBytes); err != nil {
		return run{}, err
	}
	missesBefore, err := server.misses()
	if err != nil {
		return run{}, err
	}
	args := t.args(l)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return run{}, err
	}
	stop, most := make(chan struct{}), make(chan int)
	go func() { most <- countThreads(cmd.Process.Pid, stop) }()
	err = cmd.Wait()
	close(stop)
	r := run{threads: <-most}
	if err != nil && stdout.Len() == 0 { // `redquake load` also exits with an error if the load generator was the bottleneck, as intended here
		return run{}, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	if r.figures, err = t.read(l, stdout.Bytes()); err != nil {
		return run{}, err
	}
	misses, err := server.misses()
	switch {
	case err != nil:
		return run{}, err
	case r.requests != l.requests:
		return run{}, fmt.Errorf("%d requests were made, not %d", r.requests, l.requests)
	case l.get && misses > missesBefore:
		return run{}, fmt.Errorf("%d GETs of missing keys", misses-missesBefore)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.cpuMicros = float64(cpu) / float64(time.Microsecond) / float64(r.requests)
	return r, nil
}

// countThreads returns the most threads that a process was observed to have until stop is closed, at no cost for the process.
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

// median of at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
