package main

import (
	"go/token"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestWaits(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=integration")
	analysistest.Run(t, analysistest.TestData(), waits, module+"/internal/a")
}

func TestJudge(t *testing.T) {
	found := []finding{
		{token.Position{Filename: "a_test.go", Line: 3}, ruleSleep, "TestA", "sleeps"},
		{token.Position{Filename: "a_test.go", Line: 9}, ruleSleep, "TestB", "sleeps"},
		{token.Position{Filename: "b_test.go", Line: 1}, ruleLimit, "", "is short"},
	}
	whole := exception{"a_test.go", "", ruleSleep, "a measurement"}
	named := exception{"b_test.go", "", ruleLimit, "the limit is tested"}
	for name, tc := range map[string]struct {
		allowed []exception
		want    []string // in the output; none = nothing is wrong
	}{
		"all are allowed": {[]exception{whole, named}, nil},
		"one is not":      {[]exception{whole}, []string{"b_test.go:1: is short (rule limit, in )"}},
		"another function": {
			[]exception{{"a_test.go", "TestA", ruleSleep, "a measurement"}, named},
			[]string{"a_test.go:9: sleeps (rule sleep, in TestB)"},
		},
		"another rule": {
			[]exception{whole, {"b_test.go", "", ruleBound, "?"}},
			[]string{"b_test.go:1: is short", "nothing in b_test.go  breaks rule bound"},
		},
		"no reason": {[]exception{whole, {"b_test.go", "", ruleLimit, ""}}, []string{"has no reason"}},
		"one is not used": {
			[]exception{whole, named, {"c_test.go", "TestC", ruleSleep, "gone"}},
			[]string{"nothing in c_test.go TestC breaks rule sleep"},
		},
	} {
		var out strings.Builder
		err := judge(&out, found, tc.allowed)
		if (err != nil) != (len(tc.want) > 0) || strings.Count(out.String(), "\n") != len(tc.want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out.String())
			}
		}
	}
}
