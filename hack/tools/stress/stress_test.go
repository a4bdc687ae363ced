package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestParseLoads(t *testing.T) {
	got, err := parseLoads("2, 4:10,disk:5,0", 20)
	want := []load{{loops: 2, runs: 20}, {loops: 4, runs: 10}, {disk: true, runs: 5}, {runs: 20}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "two", "2:", "2:0", "-1", "disk:x", "2,,4"} {
		if got, err := parseLoads(text, 20); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestLoadsHaveDifferentNames(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range []load{{}, {loops: 1}, {loops: 2}, {loops: 4}, {disk: true}} {
		for _, name := range []string{l.String(), l.fileName()} {
			if seen[name] {
				t.Errorf("%q twice", name)
			}
			seen[name] = true
		}
	}
	if name := (load{loops: 2}).String(); name != "2 busy loops" {
		t.Error(name)
	}
}

func TestOnlyTestsWithTheTagAreSelected(t *testing.T) {
	const text = "package a\n\nfunc TestMain(m *testing.M) {}\n\nfunc TestB(t *testing.T) {}\n\nfunc TestA(t " +
		"*testing.T) {}\n\nfunc Testing() {}\n"
	if names := integrationTests(text); names != nil {
		t.Errorf("a unit test: %v", names)
	}
	names := integrationTests("//go:build integration\n\n" + text)
	for run, want := range map[string]string{
		"":            "^(TestA|TestB)$",
		"B":           "^(TestB)$",
		"^TestA$/x/y": "^(TestA)$/x/y",
		"C":           "",
	} {
		if got := selectTests(names, run); got != want {
			t.Errorf("-run %q: %q", run, got)
		}
	}
}

func TestSharedVariableIsThatOfTheTests(t *testing.T) {
	text, err := os.ReadFile("../../../internal/testing/cluster/controlplane.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `const SharedVariable = "`+sharedVariable+`"`) {
		t.Error(sharedVariable)
	}
}

func TestOutcomes(t *testing.T) {
	const began = `{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"a says\n"}
{"Action":"run","Test":"TestB"}
{"Action":"pause","Test":"TestB"}
{"Action":"run","Test":"TestC"}
`
	cases := []struct {
		name, events   string
		passed, failed string
	}{
		{"passed, skipped and never begun", began + `{"Action":"pass","Test":"TestA","Elapsed":1.5}
{"Action":"skip","Test":"TestC"}`, "TestA", ""},
		{"a subtest failed", began + `{"Action":"fail","Test":"TestA/x/y"}
{"Action":"fail","Test":"TestA/x"}
{"Action":"fail","Test":"TestA"}
{"Action":"pass","Test":"TestC"}`, "TestC", "TestA[x/y]"},
		{"a panic of one test ended the other", began + `{"Action":"fail","Test":"TestA"}
{"Action":"output","Output":"panic: no\n"}`, "", "TestA"},
		{"the program died", began, "", "TestA TestC"},
		{"out of time after a failure", began + `{"Action":"fail","Test":"TestA"}
{"Action":"output","Test":"TestC","Output":"panic: test timed out after 1s\n"}`, "", "TestA TestC"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := newOutputs()
			if err := o.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			var passed, failed []string
			for _, test := range o.outcomes() {
				name := test.Test
				if len(test.Subtests) > 0 {
					name += "[" + strings.Join(test.Subtests, " ") + "]"
				}
				if test.Failed {
					failed = append(failed, name)
				} else {
					passed = append(passed, name)
				}
			}
			if got := strings.Join(passed, " "); got != c.passed {
				t.Errorf("passed: %s", got)
			}
			if got := strings.Join(failed, " "); got != c.failed {
				t.Errorf("failed: %s", got)
			}
		})
	}
}

func TestJournalGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	p, l := testPackage{name: "internal/redis", run: "^(TestA)$"}, load{loops: 2}
	add := func(run string) {
		t.Helper()
		j, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.add(entry{
			Package: p.name,
			Beside:  l.String(),
			Run:     run,
			Tests:   []outcome{{Test: "TestA", Seconds: 1}},
		}); err != nil {
			t.Fatal(err)
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
	add(p.run)
	add("^(TestB)$")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString(`{"package":"internal/re`) // the command was killed here
	_ = file.Close()
	add(p.run)
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.close() }()
	if n := j.runs(p, l); n != 2 || len(j.entries) != 3 {
		t.Errorf("%d runs of %d", n, len(j.entries))
	}
	if n := j.runs(p, load{loops: 4}); n != 0 {
		t.Errorf("%d runs beside another load", n)
	}
	tests := tests{options: options{loads: []load{l}}, packages: []testPackage{p, {name: "internal/plan"}}, journal: j}
	if missing := tests.missing(l, 2); len(missing) != 1 || missing[0].name != "internal/plan" {
		t.Errorf("missing in round 2: %+v", missing)
	}
	if missing := tests.missing(l, 3); len(missing) != 2 {
		t.Errorf("missing in round 3: %+v", missing)
	}
}

func TestRowsOfRuns(t *testing.T) {
	rows := summarize([]entry{
		{
			Package: "p",
			Beside:  "2 busy loops",
			Seconds: 9,
			Tests:   []outcome{{Test: "TestB", Seconds: 1}, {Test: "TestA", Seconds: 4, Failed: true, Subtests: []string{"x"}}},
		},
		{
			Package: "p",
			Beside:  "2 busy loops",
			Seconds: 9,
			Tests:   []outcome{{Test: "TestA", Seconds: 1, Failed: true, Subtests: []string{"x", "y"}}},
		},
		{Package: "p", Beside: "2 busy loops", Seconds: 9, Tests: []outcome{{Test: "TestA", Seconds: 2}}},
		{
			Package: "p",
			Beside:  "4 busy loops",
			Seconds: 7,
			Failed:  true,
			Tests:   []outcome{{Test: "TestA", Seconds: 3}, {Test: "TestB", Seconds: 3}},
		},
	})
	path := filepath.Join(t.TempDir(), "stress.json")
	if err := writeRows(path, rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"test":"p(outsideoftests)","beside":"4busyloops","runs":1,"failures":1,"medianSeconds":7,"longestSeconds":7},` +
		`{"test":"pTestA","beside":"2busyloops","runs":3,"failures":2,"failedSubtests":{"x":2,"y":1},"medianSeconds":2,"longestSeconds":4},` +
		`{"test":"pTestA","beside":"4busyloops","runs":1,"failures":0,"medianSeconds":3,"longestSeconds":3},` +
		`{"test":"pTestB","beside":"2busyloops","runs":1,"failures":0,"medianSeconds":1,"longestSeconds":1},` +
		`{"test":"pTestB","beside":"4busyloops","runs":1,"failures":0,"medianSeconds":3,"longestSeconds":3}]`
	if got := strings.Join(strings.Fields(string(text)), ""); got != want {
		t.Errorf("%s", got)
	}
	if !anyFailed(rows) {
		t.Error("no failure")
	}
	var out strings.Builder
	printRows(&out, rows)
	for _, line := range []string{
		"p TestA               2 busy loops  2         3     2.0 s", "  x ",
		"6 runs of tests, 3 failures",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

// What a test leaves behind is killed, also in a process group of its own, and nothing else is.
func TestWhatIsLeftBehindIsKilled(t *testing.T) {
	begin := func(mark string) *exec.Cmd {
		c := exec.Command("sleep", "600")
		c.Env = append(os.Environ(), mark)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	mark := fmt.Sprintf("REDQUAKE_STRESS_RUN=test-%d", os.Getpid())
	left, other := begin(mark), begin(mark+"0")
	if err := killMarked(mark); err != nil {
		t.Fatal(err)
	}
	if status, err := left.Process.Wait(); err != nil || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v", status, err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process: %v", err)
	}
}
