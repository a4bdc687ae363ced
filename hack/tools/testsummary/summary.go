package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// summary follows tests as they run.
type summary struct {
	out      io.Writer
	verbose  bool
	output   map[string][]string // of tests that have not ended, by package and test
	packages []result
	tests    []result
	counts   map[string]int // outcomes of tests; of packages and builds "failed packages"
}

// result is a package or a test that has ended.
type result struct {
	name, outcome string
	seconds       float64
	tests         int // of a package
}

const failedPackages = "failed packages"

func newSummary(out io.Writer, verbose bool) *summary {
	return &summary{out: out, verbose: verbose, output: map[string][]string{}, counts: map[string]int{}}
}

func (s *summary) failed() bool {
	return s.counts["fail"] > 0 || s.counts[failedPackages] > 0 || s.counts["pass"] == 0
}

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" || s.verbose {
			s.print(e.Output)
		} else {
			s.output[key] = append(s.output[key], e.Output)
		}
	case "build-fail":
		s.counts[failedPackages]++
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
			return
		}
		if e.Action != "pass" { // a test that is skipped says why
			s.print(s.output[key]...)
		}
		delete(s.output, key)
		s.counts[e.Action]++
		s.tests = append(s.tests, result{name: key, outcome: e.Action, seconds: e.Elapsed})
	}
}

func (s *summary) endPackage(e event) {
	if e.Action == "fail" {
		s.counts[failedPackages]++
		for key, output := range s.output { // tests that a panic or a time limit kept from ending
			if strings.HasPrefix(key, e.Package+" ") {
				s.print(output...)
			}
		}
	}
	n := 0
	for _, t := range s.tests {
		if strings.HasPrefix(t.name, e.Package+" ") {
			n++
		}
	}
	if n > 0 || e.Action == "fail" {
		s.packages = append(s.packages, result{name: e.Package, outcome: e.Action, seconds: e.Elapsed, tests: n})
	}
}

// print omits lines that only report the progress of a test.
func (s *summary) print(output ...string) {
	for _, line := range output {
		if !s.verbose && (strings.HasPrefix(line, "=== ") || line == "PASS\n" || strings.Contains(line, "[no test files]") || strings.Contains(line, "[no tests to run]")) {
			continue
		}
		fmt.Fprint(s.out, line)
	}
}

// printTable prints the packages and the slowest tests, longest first.
func (s *summary) printTable(tier string, slowest int, wall time.Duration, used machine) {
	longest := func(a, b result) int { return int(b.seconds*1000) - int(a.seconds*1000) }
	slices.SortStableFunc(s.packages, longest)
	slices.SortStableFunc(s.tests, longest)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s: %d passed, %d failed, %d skipped in %s%s\n\n", tier, s.counts["pass"], s.counts["fail"], s.counts["skip"],
		wall.Round(100*time.Millisecond), used)
	fmt.Fprintln(w, "PACKAGE\tRESULT\tTESTS\tSECONDS")
	for _, p := range s.packages {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\n", short(p.name), p.outcome, p.tests, p.seconds)
	}
	_ = w.Flush()
	if slowest == 0 {
		return
	}
	fmt.Fprintln(w, "\nSLOWEST TESTS\tRESULT\tSECONDS")
	for _, t := range s.tests[:min(slowest, len(s.tests))] {
		if t.seconds >= 0.1 {
			fmt.Fprintf(w, "%s\t%s\t%.1f\n", short(t.name), t.outcome, t.seconds)
		}
	}
	_ = w.Flush()
}

func short(name string) string { return strings.TrimPrefix(name, "github.com/redquake/redquake/") }
