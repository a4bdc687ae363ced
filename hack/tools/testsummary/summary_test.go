package main

import (
	"strings"
	"testing"
	"time"
)

func summarize(t *testing.T, verbose bool, lines string) (*summary, string) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out, verbose)
	if err := s.read(strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	s.printTable("unit", 2, time.Second, machine{})
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
		{"a test that fails is printed", passing + `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.1}
{"Action":"fail","Package":"p","Elapsed":0.3}`, true, "b_test.go:9: wrong", "something"},
		{"a test that is skipped says why", passing + `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: make bench runs it\n"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}`, false, "make bench runs it", "something"},
		{"a test that a panic ended is printed", passing + `{"Action":"output","Package":"q","Test":"TestB","Output":"panic: no\n"}
{"Action":"fail","Package":"q","Elapsed":0.3}`, true, "panic: no", "something"},
		{"a build that fails is printed", passing + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}`, true, "undefined: x", "something"},
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
