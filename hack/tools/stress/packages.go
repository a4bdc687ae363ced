package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// testPackage is a package with tests to run.
type testPackage struct {
	name     string // without the module
	folder   string
	tag      string   // by which the tests are built
	run      string   // for -test.run
	parallel int      // for -test.parallel
	alone    bool     // no other package runs at the same time; it needs no API server, either
	through  []string // the command that runs the program
}

const (
	module   = "github.com/redquake/redquake"
	smokeTag = "e2e"
	testsTag = "integration"
)

// smokePackage is the package of the smoke test, unless the expression excludes that. Its flags are
// those of make e2e.
func smokePackage(run, through string) ([]testPackage, error) {
	selected := selectTests([]string{"TestSmoke"}, run)
	if selected == "" {
		return nil, nil
	}
	folder, err := filepath.Abs("test/e2e")
	return []testPackage{
		{
			name:     "test/e2e",
			folder:   folder,
			tag:      smokeTag,
			run:      selected,
			parallel: 4,
			alone:    true,
			through:  strings.Fields(through),
		},
	}, err
}

// findPackages lists the packages with integration tests that the expression selects.
func findPackages(ctx context.Context, patterns []string, run string) ([]testPackage, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	c := exec.CommandContext(ctx, "go",
		append([]string{"list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "-tags", testsTag},
			patterns...)...)
	c.Stderr = os.Stderr
	c.Env = environment()
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []testPackage
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := lines.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		var names []string
		for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			names = append(names, integrationTests(string(text))...)
		}
		if selected := selectTests(names, run); selected != "" {
			found = append(found, testPackage{
				name:     strings.TrimPrefix(p.ImportPath, module+"/"),
				folder:   p.Dir,
				tag:      testsTag,
				run:      selected,
				parallel: 8,
			})
		}
	}
}

var (
	tagLine  = regexp.MustCompile(`(?m)^//go:build ` + testsTag + `$`)
	testLine = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// integrationTests are the tests of a file, if the file is only built with the tag: the others are
// unit tests.
func integrationTests(text string) (names []string) {
	if !tagLine.MatchString(text) {
		return nil
	}
	for _, match := range testLine.FindAllStringSubmatch(text, -1) {
		if match[1] != "TestMain" {
			names = append(names, match[1])
		}
	}
	return names
}

// selectTests makes an expression for exactly those tests that the user's expression matches, or
// "". What follows its first slash is for subtests.
func selectTests(names []string, run string) string {
	top, subtests, _ := strings.Cut(run, "/")
	expression := regexp.MustCompile(top) // main has checked it
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !expression.MatchString(name)
	})
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	selected := "^(" + strings.Join(slices.Compact(names), "|") + ")$"
	if subtests != "" {
		selected += "/" + subtests
	}
	return selected
}

// compile makes the programs that are missing, one after the other: the linker alone may need a
// gigabyte.
func (t *tests) compile(ctx context.Context) error {
	began := time.Now()
	if err := build(ctx, t.controlPlaneProgram(), "go", "build", "-o", "OUT",
		module+"/hack/tools/controlplane"); err != nil {
		return err
	}
	for i, p := range t.packages {
		fmt.Printf("compiling %s (%d of %d, %v so far)\n", p.name, i+1, len(t.packages),
			time.Since(began).Round(time.Second))
		// Without debug information a program is linked faster; traces have names and lines nevertheless.
		err := build(ctx, t.program(p), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-tags", p.tag,
			"-o", "OUT", module+"/"+p.name)
		if err != nil {
			return err
		}
	}
	return nil
}

// build runs a command that writes to OUT, unless the program exists. That appears whole or not at
// all.
func build(ctx context.Context, program string, command ...string) error {
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	part := program + ".part"
	for i, argument := range command {
		if argument == "OUT" {
			command[i] = part
		}
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	c.Env = environment()
	if err := c.Run(); err != nil {
		return interruptedOr(ctx, fmt.Errorf("%s: %w", strings.Join(command, " "), err))
	}
	return os.Rename(part, program)
}

func (t *tests) program(p testPackage) string {
	return filepath.Join(t.folder, "bin", t.key, fileName(p.name)+".test")
}

// fileName is the name of a package or a test as a part of a file's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '-'
		}
		return r
	}, name)
}

// environment is that of make integration.
func environment() []string {
	return append(os.Environ(), "CGO_ENABLED=0")
}

// keyOfTree names the code under test: the commit, and a hash of the changes to it if there are
// any.
func keyOfTree() (string, error) {
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", err
	}
	changes, err := git("status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(commit)
	if changes == "" {
		return key, nil
	}
	content, err := git("diff", "HEAD")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprint(h, changes, content)
	for line := range strings.Lines(changes) {
		if path, untracked := strings.CutPrefix(strings.TrimSpace(line), "?? "); untracked {
			text, _ := os.ReadFile(path) // a name that git quotes counts by its name alone
			_, _ = h.Write(text)
		}
	}
	return fmt.Sprintf("%s-%x", key, h.Sum(nil)[:4]), nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}
