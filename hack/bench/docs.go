package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const docsFile = "docs/benchmarks.md"

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

// section is a part of a page that a result is written into.
type section struct {
	name string
	make func() (string, error) // "" = not measured
}

// writeDocs writes what is measured into docs/benchmarks.md and docs/sizing.md.
func writeDocs() error {
	return errors.Join(writePage(sizingFile, []section{{"cost", costSection}}), writePage(docsFile, []section{
		{"bench", benchSection},
		{"collect", collectSection},
		{"day", daySection},
		{"scale", scaleSection},
		{"accuracy", elsewhere("build/accuracy.json", writeAccuracy)},
		{"starvation", elsewhere("build/starvation.json", writeStarvation)},
		{"inject", elsewhere("build/bench-inject.json", writeInjections)},
	}))
}

// writePage replaces the text between <!-- NAME:begin --> and <!-- NAME:end --> in a page for each
// result that exists. The text of other sections stays.
func writePage(file string, sections []section) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page := string(text)
	for _, section := range sections {
		content, err := section.make()
		if err != nil {
			return err
		}
		if content == "" {
			fmt.Printf("%s: section %s unchanged: no new result\n", file, section.name)
			continue
		}
		if page, err = replaceSection(page, section.name, content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, []byte(page), 0o644)
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
| its resident memory at the end | %.0f MiB |
| CPU before that: handshakes, clocks, start, warm-up | %.1f s |
| checkpoints stored meanwhile | %d, the last of %d KiB |
| how far the merged record was behind the clock | %.1f s |
`, c.Agents, c.Operations, c.IntervalSeconds, c.RequestsPerSecond, c.MeasuredSeconds, c.Cores,
		c.CPUMicros, c.ResidentMiB, c.BeginCPUSeconds, c.Checkpoints, c.CheckpointBytes>>10,
		c.LagSeconds), nil
}

func writeInjections(b *strings.Builder, list []injection) {
	b.WriteString("| fault | rounds | median ms | p90 ms | longest ms | median with kubectl ms |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range list {
		fmt.Fprintf(b, "| %s | %d | %.0f | %.0f | %.0f | %.0f |\n",
			r.Fault, r.Rounds, 1000*r.Median, 1000*r.P90, 1000*r.Longest, 1000*r.Total)
	}
}

// elsewhere is the section of a result that another program has measured, on this machine, as
// build/ is not carried to others.
func elsewhere[T any](file string, write func(*strings.Builder, T)) func() (string, error) {
	return func() (string, error) {
		var figures T
		ok, err := readJSON(file, &figures)
		if !ok || err != nil {
			return "", err
		}
		written, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		where := describeMachine()
		where.Date, where.Load = written.ModTime().Format(time.DateOnly), "not noted"
		var b strings.Builder
		b.WriteString(where.describe())
		write(&b, figures)
		return b.String(), nil
	}
}

// groups are the values with the same key, in the order of their first.
func groups[T any, K comparable](list []T, key func(T) K) [][]T {
	at := map[K]int{}
	var all [][]T
	for _, v := range list {
		i, ok := at[key(v)]
		if !ok {
			i = len(all)
			at[key(v)], all = i, append(all, nil)
		}
		all[i] = append(all[i], v)
	}
	return all
}

// describe returns one line of text.
func (m *machine) describe() string {
	return fmt.Sprintf(
		"Measured on %s: %s, %d cores, %s; %s, Linux %s; redis-server %s, %s; load average before: %s.\n\n",
		m.Date, m.CPU, m.Cores, m.Memory, m.System, m.Kernel, m.Redis, m.Go, m.Load)
}
