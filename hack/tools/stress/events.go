package main

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// event is one line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds
}

// outcome is what became of a test of the top level.
type outcome struct {
	Test     string   `json:"test"`
	Seconds  float64  `json:"seconds"`
	Failed   bool     `json:"failed,omitempty"`
	Subtests []string `json:"subtests,omitempty"` // that failed, without those whose own subtests did
	output   string
}

// outputs follows the tests of one run of a package.
type outputs struct {
	all     strings.Builder
	tests   map[string]*watched // of the top level
	running map[string]bool
}

type watched struct {
	result string // pass, fail, skip; empty until then
	outcome
	written strings.Builder
}

func newOutputs() *outputs {
	return &outputs{tests: map[string]*watched{}, running: map[string]bool{}}
}

// read takes events until the end of r.
func (o *outputs) read(r io.Reader) error {
	for lines := json.NewDecoder(r); ; {
		var e event
		if err := lines.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		o.add(e)
	}
}

func (o *outputs) add(e event) {
	o.all.WriteString(e.Output)
	if e.Test == "" {
		return
	}
	top, _, isSubtest := strings.Cut(e.Test, "/")
	t := o.tests[top]
	if t == nil {
		t = &watched{outcome: outcome{Test: top}}
		o.tests[top] = t
	}
	t.written.WriteString(e.Output)
	switch e.Action {
	case "run", "cont":
		o.running[top] = o.running[top] || !isSubtest
	case "pause":
		o.running[top] = o.running[top] && isSubtest
	case "pass", "fail", "skip":
		switch {
		case !isSubtest:
			t.result, t.Seconds = e.Action, e.Elapsed
			delete(o.running, top)
		case e.Action == "fail":
			t.Subtests = append(t.Subtests, strings.TrimPrefix(e.Test, top+"/"))
		}
	}
}

// timedOut is what the testing package writes when the time limit of a package ends its tests.
const timedOut = "panic: test timed out after"

// outcomes are those of the tests that passed or failed, by name. Tests that ran when the program
// ended have failed, unless another one that failed ended it by a panic: then it is unknown what
// they would have done, as it is of tests that had not begun.
func (o *outputs) outcomes() []outcome {
	anyFailed := false
	for _, t := range o.tests {
		anyFailed = anyFailed || t.result == "fail"
	}
	unfinishedFailed := !anyFailed || strings.Contains(o.all.String(), timedOut)
	var list []outcome
	for name, t := range o.tests {
		failed := t.result == "fail" || t.result == "" && o.running[name] && unfinishedFailed
		if !failed && t.result != "pass" {
			continue
		}
		one := t.outcome
		one.Failed, one.output = failed, t.written.String()
		one.Subtests = leaves(one.Subtests)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b outcome) int { return cmp.Compare(a.Test, b.Test) })
	return list
}

// leaves omits tests of which a subtest is in the list, too.
func leaves(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool {
			return strings.HasPrefix(other,
				name+"/")
		})
	})
}
