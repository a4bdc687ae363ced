package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
)

var start = time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC)

// recordOf is an experiment of these cells, of which each run has the cell's value.
func recordOf(f compare.Figure, repeats int, cells []string, value func() float64) *experiment.Record {
	r := &experiment.Record{Version: experiment.RecordVersion, Cells: cells}
	for i := range repeats * len(cells) {
		r.Runs = append(r.Runs, experiment.RecordedRun{
			Cell:     i % len(cells),
			Round:    i/len(cells) + 1,
			LoadTest: "load",
			Start:    start.Add(time.Duration(i) * time.Minute),
			Server:   "redis 7.0.15",
			Values:   map[string]experiment.Value{f.Name: {Value: value()}, "maxMemory": {Value: 1}},
		})
	}
	return r
}

// nightOf is the run of the n-th night, with the same value in both cells.
func nightOf(n int, f compare.Figure, value float64) Ended {
	return Ended{Figures: []compare.Figure{f}, Run: Run{
		Name:     fmt.Sprintf("n-%d", n),
		Start:    start.AddDate(0, 0, n),
		End:      start.AddDate(0, 0, n),
		Template: "one",
		Complete: true,
		Record:   recordOf(f, 3, []string{"a", "b"}, func() float64 { return value }),
	}}
}

// A change is found once, with the run that shows it; it stays when the runs before it are dropped, and the next one is
// found from its begin on.
func TestHistoryKeepsItsChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	h := &History{Version: Version}
	level := func(n int) float64 {
		switch {
		case n >= 80:
			return 0.010
		case n >= 40:
			return 0.020
		}
		return 0.010
	}
	var found []string
	for n := range 700 {
		h.Add(nightOf(n, compare.LatencyP99, level(n)*(1+random.Float64()/20)))
		h.Add(nightOf(n, compare.LatencyP99, 1)) // it is there already
		data, err := h.Encode("n-3", nil)
		if err != nil {
			t.Fatal(err)
		}
		if h, err = Decode(data); err != nil {
			t.Fatal(err)
		}
		var now []string
		for _, c := range h.Changes {
			now = append(now, fmt.Sprintf("%s since %s found %s worse %v", c.Cell, c.Since, c.Found, c.Worse))
		}
		if len(now) < len(found) || !slices.Equal(now[:len(found)], found) {
			t.Fatalf("after run %d the changes are %q, before they were %q", n, now, found)
		}
		found = now
	}
	if want := []string{
		"a since n-40 found n-41 worse true", "b since n-40 found n-41 worse true",
		"a since n-80 found n-81 worse false", "b since n-80 found n-81 worse false",
	}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
	if len(h.Regressions) > 0 {
		t.Errorf("what is back: %+v", h.Regressions)
	}
	full := 0
	for _, r := range h.Runs {
		if r.Record != nil {
			full++
		}
	}
	if len(h.Runs) != maxRuns || h.Runs[0].Name != "n-3" || h.Runs[0].Record == nil || full != fullRuns+1 ||
		h.Last("one") != "n-699" {
		t.Errorf("%d runs from %s on, %d with all figures; the last one %s", len(h.Runs), h.Runs[0].Name, full, h.Last("one"))
	}
}

// A history of large experiments fits into a ConfigMap.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	figures := []compare.Figure{compare.Throughput, compare.LatencyP99, compare.ErrorRate, compare.MaxCPU}
	cells := make([]string, experiment.MaxCells)
	for i := range cells {
		cells[i] = fmt.Sprintf("appendfsync=always,users=%d,%s", i, strings.Repeat("x", 100))
	}
	h := &History{Version: Version}
	for n := range 3 * fullRuns {
		e := nightOf(n, compare.Throughput, 1)
		e.Figures, e.Record = figures, recordOf(compare.Throughput, 15, cells, random.Float64)
		for i := range e.Record.Runs {
			for _, f := range figures {
				e.Record.Runs[i].Values[f.Name] = experiment.Value{Value: random.Float64()}
			}
		}
		h.Add(e)
	}
	var filler []Run
	for n := range maxRuns {
		r := h.Runs[0]
		r.Name, r.Record, r.Medians = fmt.Sprintf("old-%d", n), nil, map[string][]*Median{}
		for _, f := range figures {
			for range cells {
				r.Medians[f.Name] = append(r.Medians[f.Name], new(Median(random.Float64())))
			}
		}
		filler = append(filler, r)
	}
	h.Runs = append(filler, h.Runs...)
	data, err := h.Encode("", nil)
	if err != nil || len(data) > maxLength {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if last := read.Runs[len(read.Runs)-1]; len(read.Runs) < 20 || last.Name != "n-8" || last.Record == nil {
		t.Errorf("%d runs, the last one %s", len(read.Runs), last.Name)
	}
	t.Logf("%d runs of %d cells and %d figures in %d bytes", len(read.Runs), len(cells), len(figures), len(data))
}

// A run that its limits have removed from a history is not recorded again, as long as it may be found: the latest run
// stays the latest one.
func TestHistoryDropsARunOnce(t *testing.T) {
	t.Parallel()
	h := &History{Version: Version}
	kept := []string{"n-0", "n-2", "gone"}
	for n := range maxRuns + 3 {
		h.Add(nightOf(n, compare.LatencyP99, 1))
		h = reread(t, h, kept)
	}
	for range 2 {
		h.Add(nightOf(0, compare.LatencyP99, 1))
		h.Add(nightOf(2, compare.LatencyP99, 1))
		h = reread(t, h, kept)
	}
	if last := h.Last("one"); last != "n-502" || len(h.Runs) != maxRuns || h.Dropped.Runs != 3 ||
		!slices.Equal(h.Dropped.Names, kept[:2]) || !h.Has("n-0") || h.Has("n-1") {
		t.Errorf("%d runs, the last one %s; dropped %+v", len(h.Runs), last, h.Dropped)
	}
	if h = reread(t, h, kept[1:]); !slices.Equal(h.Dropped.Names, kept[1:2]) {
		t.Errorf("dropped %+v", h.Dropped)
	}
}

// The changes of a history are bounded, and one that runs are judged by is not found again.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	h := &History{Version: Version}
	for n := range 30 {
		value := 0.010
		if n >= 15 {
			value = 0.020
		}
		h.Add(nightOf(n, compare.LatencyP99, value))
	}
	if len(h.Changes) != 2 {
		t.Fatalf("%+v", h.Changes)
	}
	for n := range 2 * maxChanges {
		h.Changes = append(h.Changes, Change{
			Cell:     "a",
			Figure:   "throughput",
			Template: "one",
			Since:    fmt.Sprintf("long-ago-%d", n),
			Found:    "n-1",
		})
	}
	h = reread(t, h, nil)
	if n := len(h.Changes); n != maxChanges+2 || h.Changes[0].Since != "n-15" || h.Changes[n-1].Since != "long-ago-999" ||
		h.Dropped.Changes != maxChanges {
		t.Errorf("%d changes, dropped %+v", n, h.Dropped)
	}
	h.Add(nightOf(30, compare.LatencyP99, 0.020))
	if h = reread(t, h, nil); len(h.Changes) != maxChanges+2 || h.Changes[1].Since != "n-15" {
		t.Errorf("%d changes: %+v", len(h.Changes), h.Changes[:3])
	}
}

// reread is a history as another process reads it.
func reread(t *testing.T, h *History, objects []string) *History {
	t.Helper()
	data, err := h.Encode("", objects)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// What is no history of this version is refused.
func TestDecodeHistoryRefuses(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]any{
		"later than 1": map[string]any{"version": 2},
		"n-1: outage has": map[string]any{
			"version":   1,
			"templates": map[string]any{"x": []string{"a", "b"}},
			"runs":      []any{map[string]any{"name": "n-1", "template": "x", "medians": map[string]any{"outage": []any{1}}}},
		},
		"n-1: run 1 is of": map[string]any{
			"version": 1,
			"runs": []any{
				map[string]any{"name": "n-1", "record": map[string]any{"version": 1, "runs": []any{map[string]any{"cell": 1}}}},
			},
		},
		"cannot unmarshal": []string{"a"},
		"the name of":      map[string]any{"version": 1, "runs": []any{map[string]any{"message": "x"}}},
		"no verdict Great": map[string]any{"version": 1, "runs": []any{map[string]any{"name": "n-1", "verdict": "Great"}}},
		"longer than 512": map[string]any{
			"version": 1,
			"runs":    []any{map[string]any{"name": "n-1", "message": strings.Repeat("x", 513)}},
		},
		"is negative": map[string]any{
			"version":   1,
			"templates": map[string]any{"x": []string{"a"}},
			"runs":      []any{map[string]any{"name": "n-1", "template": "x", "medians": map[string]any{"outage": []any{-1}}}},
		},
		"latencyP99 has 2": map[string]any{
			"version":   1,
			"templates": map[string]any{"x": []string{"a"}},
			"runs": []any{
				map[string]any{"name": "n-1", "template": "x", "least": map[string]any{"latencyP99": []any{1, 2}}},
			},
		},
		"change 1 lacks": map[string]any{"version": 1, "changes": []any{map[string]any{"cell": "a"}}},
		"regression 1": map[string]any{
			"version":     1,
			"regressions": []any{map[string]any{"cell": strings.Repeat("x", 641)}},
		},
		"that is due": map[string]any{"version": 1, "confirming": map[string]any{"run": "n-1"}},
	} {
		data, err := experiment.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Decode(nil); err == nil {
		t.Error("nothing is a history")
	}
}

// Another template, or runs without figures, begin nothing and end nothing of what is known of the cells; counts change
// by their difference.
func TestHistoryOfCounts(t *testing.T) {
	t.Parallel()
	h := &History{Version: Version}
	for n := range 16 {
		lost := 0.0
		if n >= 14 {
			lost = 100
		}
		h.Add(nightOf(n, compare.LostWrites, lost))
		h.Add(Ended{Run: Run{Name: fmt.Sprintf("aborted-%d", n), Template: "one"}})
	}
	if len(h.Changes) != 2 || h.Changes[0].Since != "n-14" || h.Changes[0].Change < 100 || h.Changes[0].Change > 101 ||
		len(h.Regressions) != 2 || !strings.Contains(h.Regressions[0].Message, "lostWrites 0 to 10") {
		t.Errorf("%+v, %+v", h.Changes, h.Regressions)
	}
	other := nightOf(16, compare.LostWrites, 0)
	other.Template = "two"
	if h.Add(other); len(h.Regressions) > 0 || len(h.Changes) != 2 || h.Last("one") != "n-15" || h.Last("two") != "n-16" ||
		h.Last("three") != "" {
		t.Errorf("%+v; last %s, %s", h.Regressions, h.Last("one"), h.Last("two"))
	}
}
