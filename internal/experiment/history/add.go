package history

import (
	"math"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
)

// Ended is a run of a schedule that has ended, with what is known of it.
type Ended struct {
	Run
	Figures []compare.Figure // the primary ones, with their margins
	Confirm bool             // a run with a regression is repeated before that is called one
	// those of which it is unknown whether they have regressed, as load generators did not run
	Waited []RegressedFigure
	// why it could not be compared with the earlier run; "" = it was, or there is none
	Lacks string
}

// Add adds a run to a history, and finds what has changed with it. One that is there already
// changes nothing.
func (h *History) Add(e Ended) {
	if h.Has(e.Name) {
		return
	}
	// other cells: their level is another one
	n := len(h.Runs)
	if n > 0 && h.Runs[n-1].Template != e.Template {
		h.Regressions, h.Confirming = nil, nil
	}
	run := e.Run
	if run.Record != nil {
		if h.Templates == nil {
			h.Templates = map[string][]string{}
		}
		h.Templates[run.Template] = run.Record.Cells
		run.Medians = mediansOf(run.Record, e.Figures)
		run.Least = leastOf(run.Record, e.Figures)
		run.Record = reduced(run.Record, e.Figures)
	}
	h.Runs = append(h.Runs, run)
	if !run.Complete || run.Record == nil {
		if h.Confirming != nil && h.Confirming.Run == run.Confirms {
			h.inconclusive(run.Name + ": " + run.Message)
		}
		return
	}
	h.endRegressions(e.Figures)
	h.compared(e)
	for _, f := range e.Figures {
		for cell := range run.Record.Cells {
			h.findChange(f, cell)
		}
	}
}

// endRegressions ends those of which the figure is back.
func (h *History) endRegressions(figures []compare.Figure) {
	run := &h.Runs[len(h.Runs)-1]
	h.Regressions = slices.DeleteFunc(h.Regressions, func(r Regression) bool {
		return r.Back >= 1 &&
			run.isBack(r.RegressedFigure, figures) == isTrue
	})
	for i := range h.Regressions {
		switch r := &h.Regressions[i]; run.isBack(r.RegressedFigure, figures) {
		case isTrue:
			r.Back++
		case isFalse:
			r.Back = 0
		}
	}
}

// known is what a run tells of a question, if anything.
type known int

const (
	isUnknown known = iota
	isTrue
	isFalse
)

// isBack tells whether a figure is within the margin of its level before a regression. A run whose
// load generators waited for a CPU may not tell.
func (r *Run) isBack(of RegressedFigure, figures []compare.Figure) known {
	i := slices.IndexFunc(figures, func(f compare.Figure) bool { return f.Name == of.Figure })
	cell := slices.Index(r.Record.Cells, of.Cell)
	if i < 0 || cell < 0 || r.median(figures[i], cell) == nil {
		return isFalse
	}
	f := figures[i]
	v, limit := float64(*r.median(f, cell)), 1+f.MarginAt(of.Level)
	most := max(of.Level, f.Floor) * limit
	switch {
	case f.HigherIsBetter && v*limit >= of.Level, !f.HigherIsBetter && v <= most:
		return isTrue
	case !f.HigherIsBetter && r.leastIn(f, cell) <= most:
		return isUnknown
	}
	return isFalse
}

func (r *Run) median(f compare.Figure, cell int) *Median {
	if all := r.Medians[f.Name]; cell < len(all) {
		return all[cell]
	}
	return nil
}

// leastIn is what a figure of a cell of which there is a median is at least.
func (r *Run) leastIn(f compare.Figure, cell int) float64 {
	all := r.Least[f.Name]
	if cell < len(all) && all[cell] != nil {
		return float64(*all[cell])
	}
	return float64(*r.median(f, cell))
}

// mediansOf are those of the conclusive runs of each cell, by figure. Two runs are needed.
func mediansOf(r *experiment.Record, figures []compare.Figure) map[string][]*Median {
	all := map[string][]*Median{}
	for _, f := range figures {
		// of a censored one the least that it can be
		all[f.Name] = byCell(r, f, func(v experiment.Value) float64 { return v.Value })
	}
	return all
}

// leastOf are the medians of what the figures are at least, of those that load generators may have
// made greater; nil if there are none.
func leastOf(r *experiment.Record, figures []compare.Figure) map[string][]*Median {
	var all map[string][]*Median
	for _, f := range figures {
		if !slices.ContainsFunc(r.Runs, func(run experiment.RecordedRun) bool {
			return run.Values[f.Name].Late > 0
		}) {
			continue
		}
		if all == nil {
			all = map[string][]*Median{}
		}
		all[f.Name] = byCell(r, f, func(v experiment.Value) float64 { return v.AtLeast(f).Value })
	}
	return all
}

func byCell(r *experiment.Record, f compare.Figure, of func(experiment.Value) float64) []*Median {
	medians := make([]*Median, len(r.Cells))
	for cell := range r.Cells {
		var values []float64
		for i := range r.Runs {
			run := &r.Runs[i]
			if run.Cell == cell && run.Inconclusive == "" {
				if v, ok := run.Values[f.Name]; ok {
					values = append(values, of(v))
				}
			}
		}
		if len(values) >= 2 {
			medians[cell] = new(Median(compare.MedianOf(values)))
		}
	}
	return medians
}

// reduced is a record without what no comparison needs.
func reduced(r *experiment.Record, figures []compare.Figure) *experiment.Record {
	of := &experiment.Record{Version: r.Version, Cells: r.Cells}
	for _, run := range r.Runs {
		kept := experiment.RecordedRun{
			Cell:         run.Cell,
			Round:        run.Round,
			Inconclusive: run.Inconclusive,
			OpenLoop:     run.OpenLoop,
			Server:       run.Server,
			Values:       map[string]experiment.Value{},
		}
		for _, f := range figures {
			if v, ok := run.Values[f.Name]; ok {
				kept.Values[f.Name] = v
			}
		}
		of.Runs = append(of.Runs, kept)
	}
	return of
}

// series is a figure of a cell since its last change: the runs that have it, their medians, and
// what these are at least.
func (h *History) series(f compare.Figure, cell int) (runs []string, medians, least []float64) {
	last := &h.Runs[len(h.Runs)-1]
	since := ""
	for _, c := range h.Changes {
		if c.Template == last.Template && c.Figure == f.Name && c.Cell == last.Record.Cells[cell] {
			since = c.Since
		}
	}
	for _, r := range slices.Backward(h.Runs) {
		if r.Template != last.Template {
			break // runs before those of another template are another time
		}
		if m := r.median(f, cell); m != nil && r.Complete {
			runs = append(runs, r.Name)
			medians = append(medians, float64(*m))
			least = append(least, r.leastIn(f, cell))
		}
		if r.Name == since {
			break
		}
	}
	slices.Reverse(runs)
	slices.Reverse(medians)
	slices.Reverse(least)
	return runs, medians, least
}

// findChange adds a change of the level that the last run shows. Each run is judged once, by those
// before it: what was found stays.
func (h *History) findChange(f compare.Figure, cell int) {
	last := &h.Runs[len(h.Runs)-1]
	if last.median(f, cell) == nil {
		return
	}
	runs, medians, least := h.series(f, cell)
	found, changed := latestChange(f, medians, least)
	if !changed {
		return
	}
	before := compare.MedianOf(medians[:found.At])
	after := compare.MedianOf(medians[found.At:])
	c := Change{
		Cell:     last.Record.Cells[cell],
		Figure:   f.Name,
		Template: last.Template,
		Since:    runs[found.At],
		Found:    last.Name,
		At:       last.End,
		Change:   math.Expm1(found.Shift),
		Worse:    (found.Shift > 0) != f.HigherIsBetter,
	}
	by := compare.Signed(found.Shift)
	if f.Counted {
		c.Change = after - before
		by = f.Text(before) + " to " + f.Text(after)
	}
	h.Changes = append(h.Changes, c)
	known := slices.ContainsFunc(h.Regressions, func(r Regression) bool {
		return r.Cell == c.Cell &&
			r.Figure == c.Figure && r.Unconfirmed == ""
	})
	if c.Worse && !known {
		message := f.Name + " " + by + " over the runs of the schedule"
		h.regress(Regression{
			RegressedFigure: RegressedFigure{
				Cell:    c.Cell,
				Figure:  c.Figure,
				Level:   before,
				Message: message,
			},
			Since: c.Since,
			Found: c.Found,
		})
	}
}

// latestChange is the change that the last of some medians shows. Where load generators waited for
// a CPU it must be one whatever they have added: a rise at a run also if the runs before it were as
// slow as their medians and the others only as slow as they were at least, a fall the other way
// round. Its shift is that then.
func latestChange(f compare.Figure, medians, least []float64) (found compare.Change, changed bool) {
	found, changed = latestOf(f, medians)
	for range mostSplits {
		if !changed || slices.Equal(medians, least) {
			return found, changed
		}
		from, to := medians, least
		if found.Shift < 0 {
			from, to = least, medians
		}
		surely, ok := latestOf(f, slices.Concat(from[:found.At], to[found.At:]))
		if ok && surely.At == found.At && (surely.Shift > 0) == (found.Shift > 0) {
			return surely, true
		}
		found, changed = surely, ok // it may begin at another run
	}
	return found, false
}

// mostSplits is how many runs are tried at which a change may begin.
const mostSplits = 4

func latestOf(f compare.Figure, medians []float64) (compare.Change, bool) {
	values := make([]float64, len(medians))
	for i, m := range medians {
		values[i] = max(m, f.Floor)
		if f.Counted {
			values[i] = m + 1 // which may be none
		}
	}
	return compare.Latest(values, f.MarginAt(compare.MedianOf(medians)))
}
