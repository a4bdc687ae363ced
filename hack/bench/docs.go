package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	docsFile      = "docs/benchmarks.md"
	accuracyFile  = "build/accuracy.json"
	injectionFile = "build/bench-inject.json"
)

// injection is a line of build/bench-inject.json, which `make bench-inject` writes.
type injection struct {
	Fault   string  `json:"fault"`
	Rounds  int     `json:"rounds"`
	Median  float64 `json:"medianSeconds"`
	P90     float64 `json:"p90Seconds"`
	Longest float64 `json:"longestSeconds"`
	Kubectl float64 `json:"kubectlSeconds"`
	Total   float64 `json:"totalSeconds"`
}

// writeDocs replaces the text between <!-- NAME:begin --> and <!-- NAME:end --> in docs/benchmarks.md for each result that exists.
// The text of other sections stays.
func writeDocs() error {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		return err
	}
	page := string(text)
	for _, section := range []struct {
		name string
		make func() (string, error) // "" = not measured
	}{{"bench", benchSection}, {"collect", collectSection}, {"day", daySection}, {"accuracy", accuracySection}, {"inject", injectionSection}} {
		content, err := section.make()
		if err != nil {
			return err
		}
		if content == "" {
			fmt.Printf("%s: section %s unchanged: no new result\n", docsFile, section.name)
			continue
		}
		if page, err = replaceSection(page, section.name, content); err != nil {
			return fmt.Errorf("%s: %w", docsFile, err)
		}
	}
	return os.WriteFile(docsFile, []byte(page), 0o644)
}

func replaceSection(page, name, content string) (string, error) {
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", fmt.Errorf("it has no section between %q and %q", strings.TrimSpace(begin), end)
	}
	return before + begin + content + end + after, nil
}

func benchSection() (string, error) {
	var results []result
	var m machine
	ok, err := readJSON(benchFile, &results)
	if !ok || err != nil {
		return "", err
	}
	if _, err := readJSON(benchMachineFile, &m); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(m.describe())
	for _, version := range m.Tools {
		fmt.Fprintf(&b, "- %s\n", version)
	}
	for _, reason := range m.LeftOut {
		fmt.Fprintf(&b, "- Left out: %s\n", reason)
	}
	for _, name := range caseNames(results) {
		ofName := ofCase(results, name)
		fmt.Fprintf(&b, "\n**%s**: %d rounds of %d requests each\n\n%s", name, ofName[0].Rounds, ofName[0].Requests, benchTable(ofName))
	}
	b.WriteString("\nRatios of the medians, the first divided by the second:\n\n" + ratioTable(results))
	return b.String(), nil
}

func ofCase(results []result, name string) []result {
	return slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Case != name })
}

func benchTable(results []result) string {
	var b strings.Builder
	b.WriteString("| tool | CPU us/request | least to most | requests/s | p50 us | p99 us | threads |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f to %.2f | %.0f | %s | %s | %d |\n", r.Tool, r.CPUMicros, r.CPUMicrosMin, r.CPUMicrosMax,
			r.RequestsPerSecond, orDash(r.P50Micros), orDash(r.P99Micros), r.Threads)
	}
	return b.String()
}

func orDash(micros float64) string {
	if micros == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", micros)
}

// ratioTable holds the ratios for which there are targets. A ratio of which one side was not measured is omitted.
func ratioTable(results []result) string {
	var b strings.Builder
	b.WriteString("| case | figure | ratio |\n| --- | --- | ---: |\n")
	for _, name := range caseNames(results) {
		for _, pair := range [][2]string{
			{"redquake", "memtier_benchmark"}, {"redquake", "redis-benchmark"}, {"redquake", "go-redis"},
			{"redquake", "redquake, recording off"}, {"redquake, ledger at 1 %", "redquake"},
		} {
			one, other := find(results, name, pair[0]), find(results, name, pair[1])
			if one == nil || other == nil {
				continue
			}
			fmt.Fprintf(&b, "| %s | CPU, %s / %s | %.2f |\n", name, pair[0], pair[1], one.CPUMicros/other.CPUMicros)
		}
		if one, other := find(results, name, "redquake"), faster(find(results, name, "memtier_benchmark"), find(results, name, "redis-benchmark")); one != nil && other != nil {
			fmt.Fprintf(&b, "| %s | requests/s, redquake / %s | %.2f |\n", name, other.Tool, one.RequestsPerSecond/other.RequestsPerSecond)
		}
	}
	return b.String()
}

func caseNames(results []result) []string {
	var names []string
	for _, r := range results {
		if !slices.Contains(names, r.Case) {
			names = append(names, r.Case)
		}
	}
	return names
}

func find(results []result, name, tool string) *result {
	i := slices.IndexFunc(results, func(r result) bool { return r.Case == name && r.Tool == tool })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// faster is the one with more requests per second; either may be nil.
func faster(a, b *result) *result {
	if a == nil || b != nil && b.RequestsPerSecond > a.RequestsPerSecond {
		return b
	}
	return a
}

func collectSection() (string, error) {
	var c collected
	ok, err := readJSON(collectFile, &c)
	if !ok || err != nil {
		return "", err
	}
	return c.Machine.describe() + fmt.Sprintf(`| figure | value |
| --- | ---: |
| agents | %d, %d operations each |
| their interval | %g s |
| requests/s that their records tell of | %.0f |
| measured time | %.0f s |
| CPU of the collecting process | %.3f of one core |
| the same per merged interval | %.1f us |
| CPU before that: handshakes, clocks, start, warm-up | %.1f s |
| checkpoints stored meanwhile | %d, the last of %d KiB |
| how far the merged record was behind the clock | %.1f s |
`, c.Agents, c.Operations, c.IntervalSeconds, c.RequestsPerSecond, c.MeasuredSeconds, c.Cores, c.CPUMicros, c.BeginCPUSeconds, c.Checkpoints, c.CheckpointBytes>>10, c.LagSeconds), nil
}

func injectionSection() (string, error) {
	var list []injection
	ok, err := readJSON(injectionFile, &list)
	if !ok || err != nil {
		return "", err
	}
	where, err := machineOf(injectionFile)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(where)
	b.WriteString("| fault | rounds | median ms | p90 ms | longest ms | median with kubectl ms |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range list {
		fmt.Fprintf(&b, "| %s | %d | %.0f | %.0f | %.0f | %.0f |\n", r.Fault, r.Rounds, 1000*r.Median, 1000*r.P90, 1000*r.Longest, 1000*r.Total)
	}
	return b.String(), nil
}

// machineOf describes the machine that a result without one was measured on: this one, as build/ is not carried elsewhere.
func machineOf(file string) (string, error) {
	written, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	where := describeMachine()
	where.Date, where.Load = written.ModTime().Format(time.DateOnly), "not noted"
	return where.describe(), nil
}

// describe returns one line of text.
func (m *machine) describe() string {
	return fmt.Sprintf("Measured on %s: %s, %d cores, %s; %s, Linux %s; redis-server %s, %s; load average before: %s.\n\n",
		m.Date, m.CPU, m.Cores, m.Memory, m.System, m.Kernel, m.Redis, m.Go, m.Load)
}
