// Command testlint finds in tests with other processes what fails on a slow machine only: sleeps,
// single questions to Prometheus, short limits. It exits with 1 if there is any that exceptions.go
// does not list, or if an exception is not needed any more.
//
//	testlint [-tags TAGS] PACKAGES
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

func main() {
	tags := flag.String("tags", "integration,e2e", "build tags of the tests")
	flag.Parse()
	found, err := find(*tags, flag.Args())
	if err == nil {
		err = judge(os.Stdout, found, exceptions)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlint:", err)
		os.Exit(1)
	}
}

// finding is one of the analyzer's diagnostics.
type finding struct {
	at   token.Position // in a file relative to the working directory
	rule string
	// the declared one around it, such as "TestRun" or "(*place).until"; "" outside of functions
	function string
	message  string
}

// find analyzes packages.
func find(tags string, patterns []string) ([]finding, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode:       packages.LoadSyntax,
		Tests:      true,
		BuildFlags: []string{"-tags=" + tags},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		return nil, fmt.Errorf("%d errors in packages", n)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{waits}, loaded, nil)
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	// a file belongs to a package and to the variant of it that has its tests
	seen := map[string]bool{}
	var all []finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, action.Err
		}
		for _, d := range action.Diagnostics {
			f := finding{
				action.Package.Fset.Position(d.Pos), d.Category,
				functionAt(action.Package.Syntax, d.Pos), d.Message,
			}
			if f.at.Filename, err = filepath.Rel(here, f.at.Filename); err != nil {
				return nil, err
			}
			if key := fmt.Sprint(f); !seen[key] {
				seen[key], all = true, append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b finding) int {
		return strings.Compare(fmt.Sprintf("%s:%6d:%4d", a.at.Filename, a.at.Line, a.at.Column),
			fmt.Sprintf("%s:%6d:%4d", b.at.Filename, b.at.Line, b.at.Column))
	})
	return all, nil
}

// exception is a place that may break a rule.
type exception struct {
	file     string // relative to the repository
	function string // "" = the whole file
	rule     string
	reason   string
}

func (e exception) covers(f finding) bool {
	return e.file == filepath.ToSlash(f.at.Filename) && e.rule == f.rule &&
		(e.function == "" || e.function == f.function)
}

// judge prints the findings without an exception, and the exceptions without a finding or without a
// reason.
func judge(to io.Writer, found []finding, allowed []exception) error {
	wrong := 0
	needed := make([]bool, len(allowed))
	for _, f := range found {
		covered := false
		for i, e := range allowed {
			if e.covers(f) {
				covered, needed[i] = true, true
			}
		}
		if !covered {
			wrong++
			fmt.Fprintf(to, "%s: %s (rule %s, in %s)\n", f.at, f.message, f.rule, f.function)
		}
	}
	for i, e := range allowed {
		switch {
		case !needed[i]:
			wrong++
			fmt.Fprintf(to, "exceptions.go: nothing in %s %s breaks rule %s\n", e.file, e.function, e.rule)
		case e.reason == "":
			wrong++
			fmt.Fprintf(to, "exceptions.go: the exception of %s %s from rule %s has no reason\n", e.file,
				e.function, e.rule)
		}
	}
	if wrong > 0 {
		return errors.New(
			"tests must pass on a slow machine: wait with internal/testing/await, and give what is awaited minutes")
	}
	return nil
}
