package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// costFile has what a load costs, from the repository's root; sizingFile is the page about it.
const (
	costFile   = "build/bench-cost.json"
	sizingFile = "docs/sizing.md"
)

// How long a load runs before and while its cost is measured.
const (
	costWarmUp = 3 * time.Second
	costWithin = 8 * time.Second
)

// costs are what `bench cost` measures.
type costs struct {
	Machine machine `json:"machine"`
	Rounds  int     `json:"rounds"`
	Loads   []cost  `json:"loads"`
}

// cost is what a load pod uses in a kind of load, in the median of the rounds: the process of
// `redquake load` some seconds after its start.
type cost struct {
	Case        string  `json:"case"`
	Rate        int     `json:"rate"` // requests/s that are planned
	Connections int     `json:"connections"`
	Cores       float64 `json:"cores"`    // CPU time by time
	MostCores   float64 `json:"most"`     // in a round
	OwnMiB      float64 `json:"ownMiB"`   // resident memory of its own
	FilesMiB    float64 `json:"filesMiB"` // resident pages of the program, which processes of a node share
}

// costCase is a kind of load.
type costCase struct {
	work
	more []string // flags of redquake load
}

// costCases are rates, and at one of them what else makes a difference.
func costCases() []costCase {
	var cases []costCase
	add := func(name string, w work, more ...string) {
		w.name, w.pipeline = name, 1
		w.connections, w.valueBytes = max(w.connections, usualConnections), max(w.valueBytes, usualBytes)
		cases = append(cases, costCase{work: w, more: more})
	}
	for _, rate := range []int{1, 500, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000} {
		add("", work{rate: rate})
	}
	const rate = 10_000
	add("500 connections", work{rate: rate, connections: 500})
	add("4,000 connections", work{rate: rate, connections: 4000})
	add("TLS", work{rate: rate, secured: true})
	add("TLS, 1,000 connections", work{rate: rate, secured: true, connections: 1000})
	add("values of 1 KiB", work{rate: rate, valueBytes: 1 << 10})
	add("values of 16 KiB", work{rate: rate, valueBytes: 16 << 10})
	add("a reply of 16 KiB (GET)", work{rate: rate, valueBytes: 16 << 10, get: true})
	add("Poisson arrivals", work{rate: rate}, "--arrivals", "Poisson")
	add("a ledger of 1 %", work{rate: rate}, "--verify-writes", "--verify-share", "1%")
	add("without the probe", work{rate: rate}, "--probe-rate", "0")
	return cases
}

func runCost(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cost", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each load is measured")
	program := flags.String("redquake", "bin/redquake", "the program to measure")
	allowBusy := flags.Bool("allow-busy", false, "measure although others use the cores under test")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := bench{machine: describeMachine()}
	b.options.redquake, b.options.allowBusy, b.options.only = *program, *allowBusy, "none"
	if err := b.prepare(ctx); err != nil {
		return err
	}
	all := costs{Rounds: *rounds}
	cases := costCases()
	measured := make([][]cost, len(cases))
	for range *rounds {
		for i := range cases {
			one, err := b.costOf(ctx, &cases[i])
			if err != nil {
				return fmt.Errorf("%d/s, %s: %w", cases[i].rate, cases[i].name, err)
			}
			fmt.Printf("%d/s, %s: %.3f cores, %.1f and %.1f MiB\n", one.Rate, one.Case, one.Cores,
				one.OwnMiB, one.FilesMiB)
			measured[i] = append(measured[i], one)
		}
	}
	for _, of := range measured {
		one := of[0]
		one.Cores = medianOf(of, func(c cost) float64 { return c.Cores })
		one.OwnMiB = medianOf(of, func(c cost) float64 { return c.OwnMiB })
		one.FilesMiB = medianOf(of, func(c cost) float64 { return c.FilesMiB })
		for _, c := range of {
			one.MostCores = max(one.MostCores, c.Cores)
		}
		all.Loads = append(all.Loads, one)
	}
	all.Machine = b.machine
	if err := writeJSON(costFile, all); err != nil {
		return err
	}
	return writeDocs()
}

func medianOf(list []cost, of func(cost) float64) float64 {
	var values []float64
	for _, c := range list {
		values = append(values, of(c))
	}
	return median(values)
}

// costOf measures one load against a server of its own.
func (b *bench) costOf(ctx context.Context, c *costCase) (cost, error) {
	w := c.work
	d, err := deploy(ctx, &w, b.cores)
	if err != nil {
		return cost{}, err
	}
	defer d.stop()
	if err := d.fill(ctx, "rq:%d", 0, w.valueBytes); err != nil {
		return cost{}, err
	}
	if !b.options.allowBusy {
		if err := b.watcher.waitQuiet(ctx, d.pids); err != nil {
			return cost{}, err
		}
	}
	seconds := int((costWarmUp + costWithin + 2*time.Second) / time.Second)
	w.requests = w.rate * seconds
	t := redquakeLoad(ctx, b.options.redquake, nameRedquake, "")
	args := append(t.args(&w), c.more...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	messages, err := cmd.StderrPipe()
	if err != nil {
		return cost{}, err
	}
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := onCore(b.cores.tool, cmd.Start); err != nil {
		return cost{}, err
	}
	said := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(messages) // of a process that has ended
		said <- text
	}()
	one, err := whileRunning(ctx, cmd.Process.Pid, &w)
	text := <-said
	_ = cmd.Wait() // it fails if the load generator was the bottleneck
	if err != nil {
		return cost{}, fmt.Errorf("%w: %s", err, text)
	}
	f, err := t.read(&w, []byte(stdout.String()))
	if err == nil && f.perSecond < 0.99*float64(w.rate) {
		err = fmt.Errorf("%.0f requests/s were made", f.perSecond)
	}
	return one, err
}

// whileRunning reads what a process uses for some seconds.
func whileRunning(ctx context.Context, pid int, w *work) (cost, error) {
	one := cost{Case: w.name, Rate: w.rate, Connections: w.connections}
	if err := pause(ctx, costWarmUp); err != nil {
		return one, err
	}
	before, err := readProcess(pid)
	began := time.Now()
	if err := errors.Join(err, pause(ctx, costWithin)); err != nil {
		return one, err
	}
	after, err := readProcess(pid)
	if err != nil {
		return one, err
	}
	one.Cores = float64(after.cpu-before.cpu) / float64(time.Since(began))
	one.OwnMiB, one.FilesMiB = memoryMiB(pid, "RssAnon"), memoryMiB(pid, "RssFile")
	return one, nil
}

// memoryMiB reads a size in /proc/PID/status.
func memoryMiB(pid int, name string) float64 {
	text := strings.TrimSpace(field(fmt.Sprintf("/proc/%d/status", pid), name))
	kib, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}

func costSection() (string, error) {
	var all costs
	ok, err := readJSON(costFile, &all)
	if !ok || err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(all.Machine.describe())
	b.WriteString("| requests/s | cores | most | us of CPU for each request | for each one more | memory of its own |\n" +
		"| ---: | ---: | ---: | ---: | ---: | ---: |\n")
	var last cost
	for _, c := range all.Loads {
		if c.Case != "" {
			continue
		}
		more := "-"
		if last.Rate > 0 {
			more = fmt.Sprintf("%.1f", 1e6*(c.Cores-last.Cores)/float64(c.Rate-last.Rate))
		}
		fmt.Fprintf(&b, "| %d | %.3f | %.3f | %.1f | %s | %.0f MiB |\n", c.Rate, c.Cores, c.MostCores,
			1e6*c.Cores/float64(c.Rate), more, c.OwnMiB)
		last = c
	}
	usual := slices.IndexFunc(all.Loads, func(c cost) bool {
		return c.Case == "" && c.Rate == all.Loads[len(all.Loads)-1].Rate
	})
	fmt.Fprintf(&b, "\nAt %d/s, with one thing changed:\n\n", all.Loads[usual].Rate)
	b.WriteString("| what | cores | more than without | memory of its own |\n| --- | ---: | ---: | ---: |\n")
	for _, c := range all.Loads {
		if c.Case != "" {
			fmt.Fprintf(&b, "| %s | %.3f | %+.3f | %.0f MiB |\n", c.Case, c.Cores,
				c.Cores-all.Loads[usual].Cores, c.OwnMiB)
		}
	}
	return b.String(), nil
}
