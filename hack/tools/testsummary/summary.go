package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// summary follows tests as they run.
type summary struct {
	out      io.Writer
	verbose  bool
	folder   string             // for the output of what fails
	open     map[string]*output // of tests of the top level that have not ended, by package and test
	outside  map[string][]line  // what packages and builds have written outside of their tests
	packages []result
	tests    []result
	failures []failure
	counts   map[string]int // outcomes of tests; of packages and builds "failed packages"
}

// output is that of a test of the top level with its subtests.
type output struct {
	pkg, test string
	lines     []line
	failed    map[string]bool // tests
}

// result is a package or a test that has ended.
type result struct {
	name, outcome string
	seconds       float64
	tests         int // of a package
}

const failedPackages = "failed packages"

func newSummary(out io.Writer, verbose bool, folder string) *summary {
	return &summary{
		out: out, verbose: verbose, folder: folder,
		open: map[string]*output{}, outside: map[string][]line{}, counts: map[string]int{},
	}
}

func (s *summary) failed() bool {
	return s.counts["fail"] > 0 || s.counts[failedPackages] > 0 || s.counts["pass"] == 0
}

func (s *summary) add(e event) {
	switch e.Action {
	case "output", "build-output":
		s.addOutput(e)
	case "build-fail":
		s.counts[failedPackages]++
		s.fail(e.ImportPath, "", last(longestMessage, s.outside[e.ImportPath]), s.outside[e.ImportPath])
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
	}
}

func (s *summary) addOutput(e event) {
	if e.Test == "" {
		of := e.Package + e.ImportPath // a build has the latter
		s.outside[of] = append(s.outside[of], line{text: e.Output})
		s.print(e.Output)
		return
	}
	if s.verbose {
		s.print(e.Output)
	}
	o := s.outputOf(e)
	o.lines = append(o.lines, line{test: e.Test, text: e.Output})
}

func (s *summary) outputOf(e event) *output {
	top, _, _ := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	if s.open[key] == nil {
		s.open[key] = &output{pkg: e.Package, test: top, failed: map[string]bool{}}
	}
	return s.open[key]
}

// endTest prints what a test says that failed or was skipped. That of a subtest is printed with its
// test.
func (s *summary) endTest(e event) {
	s.counts[e.Action]++
	s.tests = append(s.tests, result{
		name:    e.Package + " " + e.Test,
		outcome: e.Action,
		seconds: e.Elapsed,
	})
	o := s.outputOf(e)
	if e.Action != "pass" {
		o.failed[e.Test] = true
	}
	if e.Test != o.test {
		return
	}
	said := o.said()
	if !s.verbose {
		s.printMessages(said)
	}
	if e.Action == "fail" {
		s.fail(o.pkg, o.test, said, o.lines)
	}
	delete(s.open, o.pkg+" "+o.test)
}

// said is what the test and those of its subtests say that failed or were skipped.
func (o *output) said() []string {
	var text strings.Builder
	for _, l := range o.lines {
		if o.failed[l.test] {
			text.WriteString(l.text)
		}
	}
	return messages(text.String())
}

func (s *summary) endPackage(e event) {
	n := 0
	for _, t := range s.tests {
		if strings.HasPrefix(t.name, e.Package+" ") {
			n++
		}
	}
	if e.Action == "fail" {
		s.counts[failedPackages]++
		s.failOpen(e.Package)
		known := e.FailedBuild != "" ||
			slices.ContainsFunc(s.failures, func(f failure) bool { return f.pkg == e.Package })
		if !known {
			s.fail(e.Package, "", last(longestMessage, s.outside[e.Package]), s.outside[e.Package])
		}
	}
	delete(s.outside, e.Package)
	if n > 0 || e.Action == "fail" {
		s.packages = append(s.packages, result{
			name:    e.Package,
			outcome: e.Action,
			seconds: e.Elapsed,
			tests:   n,
		})
	}
}

// failOpen is for tests that a panic or a time limit kept from ending. Those that ended nothing by
// themselves have nothing to say.
func (s *summary) failOpen(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(s.open)) {
		o := s.open[key]
		if o.pkg != pkg {
			continue
		}
		for _, l := range o.lines {
			o.failed[l.test] = true
		}
		if said := o.said(); len(said) > 0 {
			s.printMessages(said)
			s.fail(pkg, o.test, said, o.lines)
		}
		delete(s.open, key)
	}
}

// print omits lines that only report the progress of a test.
func (s *summary) print(output ...string) {
	for _, line := range output {
		if !s.verbose && (strings.HasPrefix(line, "=== ") || line == "PASS\n" ||
			strings.Contains(line, "[no test files]") || strings.Contains(line, "[no tests to run]")) {
			continue
		}
		fmt.Fprint(s.out, line)
	}
}

func (s *summary) printMessages(said []string) {
	for _, message := range said {
		fmt.Fprintln(s.out, message)
	}
}

// printTable prints the packages and the slowest tests, longest first.
func (s *summary) printTable(tier string, slowest int, wall time.Duration, used machine) {
	longest := func(a, b result) int { return int(b.seconds*1000) - int(a.seconds*1000) }
	slices.SortStableFunc(s.packages, longest)
	slices.SortStableFunc(s.tests, longest)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s: %d passed, %d failed, %d skipped in %s%s\n\n", tier, s.counts["pass"],
		s.counts["fail"], s.counts["skip"],
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

func short(name string) string {
	return strings.TrimPrefix(name, "github.com/redquake/redquake/")
}
