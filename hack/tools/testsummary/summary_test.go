package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func summarize(t *testing.T, verbose bool, lines string) (*summary, string) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out, verbose, t.TempDir())
	if err := s.read(strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	s.printTable("unit", 2, time.Second, machine{})
	s.printFailures()
	return s, out.String()
}

func TestSummary(t *testing.T) {
	const passing = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: something\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":2.5}
{"Action":"output","Package":"p","Output":"ok  \tp\t2.6s\n"}
{"Action":"pass","Package":"p","Elapsed":2.6}
`
	cases := []struct {
		name, lines  string
		failed       bool
		want, absent string
	}{
		{"a test that passes is not printed", passing, false, "ok  \tp\t2.6s\n", "something"},
		{"a table of packages", passing, false, "p        pass    1      2.6\n", "fail "},
		{
			"a test that fails is printed",
			passing + `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.1}
{"Action":"fail","Package":"p","Elapsed":0.3}`, true, "b_test.go:9: wrong", "something",
		},
		{
			"a test that is skipped says why",
			passing + `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: make bench runs it\n"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}`, false, "make bench runs it", "something",
		},
		{
			"a test that a panic ended is printed",
			passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"panic: no\n"}
{"Action":"fail","Package":"q","Elapsed":0.3}`, true, "panic: no", "something",
		},
		{
			"a build that fails is printed",
			passing + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}`, true, "undefined: x", "something",
		},
		{"no test is a failure", `{"Action":"pass","Package":"p","Elapsed":0.1}`, true, "0 passed", "ok"},
		{"lines that are no events are kept", passing + "go: downloading x\n", false, "go: downloading x\n", "something"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, out := summarize(t, false, c.lines)
			if s.failed() != c.failed || !strings.Contains(out, c.want) || strings.Contains(out, c.absent) {
				t.Errorf("failed %v, output:\n%s", s.failed(), out)
			}
		})
	}
}

func TestVerbosePrintsAll(t *testing.T) {
	_, out := summarize(t, true, `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`)
	if !strings.HasPrefix(out, "=== RUN   TestA\n") {
		t.Errorf("output:\n%s", out)
	}
}

func TestMessages(t *testing.T) {
	long := strings.Repeat("        more\n", 30)
	cases := []struct{ name, text, want string }{
		{
			"a server's log is left out",
			"1:M 12:00 ready\n    a_test.go:7: wrong:\n        one\n\ttwo\n1:M bye\n--- FAIL: TestA (0.00s)\n",
			"    a_test.go:7: wrong:\n        one\n--- FAIL: TestA (0.00s)",
		},
		{
			"a long message is cut", "    a_test.go:7: log\n" + long,
			"    a_test.go:7: log\n" + long[:9*13] + "        ... 21 more lines",
		},
		{"a panic has what follows", "log\npanic: no\n\ngoroutine 7\n", "panic: no\n\ngoroutine 7\n"},
		{"nothing", "log\nlog\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(messages(c.text), "\n"); got != c.want {
				t.Errorf("%q\nwant\n%q", got, c.want)
			}
		})
	}
	many := messages(strings.Repeat("    a_test.go:7: first\n", 20) + "    a_test.go:9: last\n")
	if len(many) != mostMessages+1 || many[mostMessages] != "    a_test.go:9: last" ||
		many[mostMessages/2] != "    ... 9 more messages" {
		t.Errorf("%q", many)
	}
}

func TestFailuresAreTheLastLines(t *testing.T) {
	s, out := summarize(t, false, `{"Action":"output","Package":"p/q","Test":"TestA","Output":"a server's log\n"}
{"Action":"output","Package":"p/q","Test":"TestA/x","Output":"    a_test.go:9: wrong\n"}
{"Action":"output","Package":"p/q","Test":"TestA/y","Output":"    a_test.go:9: right\n"}
{"Action":"fail","Package":"p/q","Test":"TestA/x"}
{"Action":"pass","Package":"p/q","Test":"TestA/y"}
{"Action":"fail","Package":"p/q","Test":"TestA"}
{"Action":"output","Package":"p/q","Output":"FAIL\n"}
{"Action":"fail","Package":"p/q"}
{"Action":"output","Package":"p/r","Output":"no server\n"}
{"Action":"output","Package":"p/r","Output":"FAIL\tp/r\t0.1s\n"}
{"Action":"fail","Package":"p/r"}
`)
	path := filepath.Join(s.folder, "p-q-TestA.log")
	want := "\nFAILED\np/q TestA\n        a_test.go:9: wrong\n    all of its output: " + path +
		"\np/r\n    no server\n    all of its output: " + filepath.Join(s.folder, "p-r.log") + "\n"
	if !strings.HasSuffix(out, want) || strings.Contains(out, "a server's log") || strings.Contains(out, "right") {
		t.Errorf("output:\n%s\nwant at its end\n%s", out, want)
	}
	for file, want := range map[string]string{
		path:                                  "a server's log\n    a_test.go:9: wrong\n    a_test.go:9: right\n",
		filepath.Join(s.folder, failuresFile): want,
	} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}
