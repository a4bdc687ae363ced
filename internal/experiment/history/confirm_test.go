package history

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
)

// shownIn is a run that shows regressions of these cells against an earlier run.
func shownIn(name, confirms, against string, cells ...string) Ended {
	e := nightOf(0, compare.LatencyP99, 0.010)
	e.Name, e.Confirms, e.Against, e.Confirm = name, confirms, against, true
	for _, cell := range cells {
		e.Regressed = append(e.Regressed, RegressedFigure{
			Cell:    cell,
			Figure:  "latencyP99",
			Level:   0.005,
			Message: "slower in " + name,
		})
	}
	return e
}

// abortedRun is one without figures.
func abortedRun(name, confirms string) Ended {
	return Ended{Run: Run{Name: name, Template: "one", Confirms: confirms, Message: "Aborted: by hand"}, Confirm: true}
}

func withoutRuns(e Ended, cell int) Ended {
	e.Record.Runs = slices.DeleteFunc(e.Record.Runs, func(r experiment.RecordedRun) bool { return r.Cell == cell })
	return e
}

// inconclusive is a run whose load generators waited for so long that nothing of cell a is known.
func inconclusive(e Ended) Ended {
	e.Waited = []RegressedFigure{{Cell: "a", Figure: compare.LatencyP99.Name}}
	return e
}

// thatWaited is a run whose load generators waited: what it shows may be as little as least.
func thatWaited(e Ended, least float64) Ended {
	for i := range e.Record.Runs {
		v := e.Record.Runs[i].Values[compare.LatencyP99.Name]
		v.Least, v.Late = least, 0.1
		e.Record.Runs[i].Values[compare.LatencyP99.Name] = v
	}
	return e
}

// A regression that is to be confirmed is called if a second run shows it, and not if one does not. What is inconclusive is
// tried again; in the end, it is called without having been confirmed. Until then the slower run is not what others are
// compared with.
func TestRegressionIsConfirmed(t *testing.T) {
	t.Parallel()
	lacking := shownIn("n-2c", "n-2", "n-1")
	lacking.Lacks = "there is no RedisExperiment n-1"
	for name, c := range map[string]struct {
		then      []Ended
		pending   string // the run that is to be repeated, with the cells, and repetitions that could not tell
		called    string // the first regression, with its begin, and why it is not confirmed
		last      string
		regressed int
	}{
		"not repeated yet":        {nil, "n-2[a b] 0", "", "n-1", 0},
		"the repetition shows it": {[]Ended{shownIn("n-2c", "n-2", "n-1", "a", "b")}, "", "a n-2 n-2c ", "n-2c", 2},
		"it shows one of them":    {[]Ended{shownIn("n-2c", "n-2", "n-1", "b")}, "", "b n-2 n-2c ", "n-2c", 1},
		"it shows none":           {[]Ended{shownIn("n-2c", "n-2", "n-1")}, "", "", "n-2c", 0},
		"it is aborted":           {[]Ended{abortedRun("n-2c", "n-2")}, "n-2[a b] 1", "", "n-1", 0},
		"the second one shows it": {
			[]Ended{abortedRun("n-2c", "n-2"), shownIn("n-2d", "n-2", "n-1", "a")},
			"",
			"a n-2 n-2d ",
			"n-2d",
			1,
		},
		"the second one does not": {[]Ended{abortedRun("n-2c", "n-2"), shownIn("n-2d", "n-2", "n-1")}, "", "", "n-2d", 0},
		"three are aborted": {
			[]Ended{abortedRun("n-2c", "n-2"), abortedRun("n-2d", "n-2"), abortedRun("n-2e", "n-2")},
			"",
			"a n-2 n-2 n-2e: Aborted: by hand",
			"n-2",
			2,
		},
		"not compared": {[]Ended{lacking}, "n-2[a b] 1", "", "n-1", 0},
		"a cell is not measured": {
			[]Ended{withoutRuns(shownIn("n-2c", "n-2", "n-1", "a"), 1)},
			"n-2[b] 1",
			"a n-2 n-2c ",
			"n-1",
			1,
		},
		"one of them is inconclusive": {[]Ended{inconclusive(shownIn("n-2c", "n-2", "n-1"))}, "n-2[a] 1", "", "n-1", 0},
		"it waited, and shows none":   {[]Ended{thatWaited(shownIn("n-2c", "n-2", "n-1"), 0.004)}, "", "", "n-2c", 0},
		"an aborted run of a time":    {[]Ended{abortedRun("n-3", "")}, "n-2[a b] 0", "", "n-1", 0},
		"the next time shows it":      {[]Ended{shownIn("n-3", "", "n-1", "a", "b")}, "", "a n-2 n-3 ", "n-3", 2},
		"the next time does not":      {[]Ended{shownIn("n-3", "", "n-1")}, "", "", "n-3", 0},
		"the next one is of others": {
			[]Ended{shownIn("n-3", "", "n-0")},
			"",
			"a n-2 n-2 n-3 was compared with another run",
			"n-3",
			2,
		},
		"confirmed later": {
			[]Ended{shownIn("n-3", "", "n-0"), shownIn("n-4", "", "n-0", "a"), shownIn("n-4c", "n-4", "n-0", "a")},
			"",
			"a n-2 n-4c ",
			"n-4c",
			2,
		},
		"shown by the repetition too": {
			[]Ended{withoutRuns(shownIn("n-2c", "n-2", "n-1"), 1), shownIn("n-2d", "n-2", "n-1", "a")},
			"",
			"",
			"n-2d",
			0,
		},
	} {
		h := &History{Version: Version}
		h.Add(nightOf(1, compare.LatencyP99, 0.010))
		h.Add(shownIn("n-2", "", "n-1", "a", "b"))
		for _, e := range c.then {
			h.Add(e)
			h = reread(t, h, nil)
		}
		pending, called := "", ""
		if of := h.Confirming; of != nil {
			var cells []string
			for _, r := range of.Regressed {
				cells = append(cells, r.Cell)
			}
			pending = fmt.Sprintf("%s%v %d", of.Run, cells, of.Attempts)
		}
		if len(h.Regressions) > 0 {
			r := h.Regressions[0]
			called = fmt.Sprintf("%s %s %s %s", r.Cell, r.Since, r.Found, r.Unconfirmed)
		}
		if pending != c.pending || called != c.called || len(h.Regressions) != c.regressed || h.Last("one") != c.last {
			t.Errorf("%s: pending %q, called %q (%d), last %s; want %+v", name, pending, called, len(h.Regressions),
				h.Last("one"), c)
		}
	}
}

// The figures that a repetition is compared with stay, however many runs end before it.
func TestEarlierRunOfARepetitionIsKept(t *testing.T) {
	t.Parallel()
	h := &History{Version: Version}
	h.Add(nightOf(1, compare.LatencyP99, 0.010))
	h.Add(shownIn("n-2", "", "n-1", "a"))
	for n := range maxRuns + 5 {
		h.Runs = append(h.Runs, nightOf(10+n, compare.LatencyP99, 0.010).Run)
	}
	for i := range h.Runs {
		h.Runs[i].Medians = nil
	}
	h = reread(t, h, nil)
	if before := h.Find("n-1"); before == nil || before.Record == nil || h.Find("n-2") == nil || len(h.Runs) != maxRuns {
		t.Errorf("%d runs from %s on", len(h.Runs), h.Runs[0].Name)
	}
}
