package experiment

import (
	"math"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// Ended is a run of a schedule that has ended, with what is known of it.
type Ended struct {
	HistoryRun
	Figures []compare.Figure // the primary ones, with their margins
	Confirm bool             // a run with a regression is repeated before that is called one
	Lacks   string           // why it could not be compared with the earlier run; "" = it was, or there is none
}

// Add adds a run to a history, and finds what has changed with it. One that is there already changes nothing.
func (h *History) Add(e Ended) {
	if h.Has(e.Name) {
		return
	}
	if n := len(h.Runs); n > 0 && h.Runs[n-1].Template != e.Template { // other cells: their level is another one
		h.Regressions, h.Confirming = nil, nil
	}
	run := e.HistoryRun
	if run.Record != nil {
		if h.Templates == nil {
			h.Templates = map[string][]string{}
		}
		h.Templates[run.Template] = run.Record.Cells
		run.Medians, run.Late = run.Record.medians(e.Figures), run.Record.late(e.Figures)
		run.Record = run.Record.reduced(e.Figures)
	}
	h.Runs = append(h.Runs, run)
	if !run.Complete || run.Record == nil {
		if h.Confirming != nil && h.Confirming.Run == run.Confirms {
			h.cannotTell(run.Name + ": " + run.Message)
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
	h.Regressions = slices.DeleteFunc(h.Regressions, func(r Regression) bool { return r.Back >= 1 && run.isBack(&r, figures) })
	for i := range h.Regressions {
		if r := &h.Regressions[i]; run.isBack(r, figures) {
			r.Back++
		} else {
			r.Back = 0
		}
	}
}

// isBack reports whether a figure is within the margin of its level before a regression.
func (r *HistoryRun) isBack(of *Regression, figures []compare.Figure) bool {
	f := slices.IndexFunc(figures, func(f compare.Figure) bool { return f.Name == of.Figure })
	cell := slices.Index(r.Record.Cells, of.Cell)
	if f < 0 || cell < 0 || r.median(figures[f], cell) == nil {
		return false
	}
	v, limit := float64(*r.median(figures[f], cell)), 1+figures[f].MarginAt(of.Level)
	if figures[f].HigherIsBetter {
		return v*limit >= of.Level
	}
	return v <= max(of.Level, figures[f].Floor)*limit
}

func (r *HistoryRun) median(f compare.Figure, cell int) *Median {
	if all := r.Medians[f.Name]; cell < len(all) {
		return all[cell]
	}
	return nil
}

func (r *HistoryRun) lateOf(f compare.Figure, cell int) float64 {
	if all := r.Late[f.Name]; cell < len(all) {
		return all[cell]
	}
	return 0
}

// medians are those of the conclusive runs of each cell, by figure. Two runs are needed.
func (r *Record) medians(figures []compare.Figure) map[string][]*Median {
	all := map[string][]*Median{}
	for _, f := range figures {
		of := make([]*Median, len(r.Cells))
		for cell := range r.Cells {
			var values []float64
			for i := range r.Runs {
				if run := &r.Runs[i]; run.Cell == cell && run.Inconclusive == "" {
					if v, ok := run.Values[f.Name]; ok {
						values = append(values, v.Value) // of a censored one the least that it can be
					}
				}
			}
			if len(values) >= 2 {
				of[cell] = new(Median(medianOf(values)))
			}
		}
		all[f.Name] = of
	}
	return all
}

// late are the shares of the requests of each cell that load generators may have made late, by figure; of latencies only, and nil if there are none.
func (r *Record) late(figures []compare.Figure) map[string][]float64 {
	var all map[string][]float64
	cells := r.CellsOf(func(int) string { return "" })
	for _, f := range figures {
		of := make([]float64, len(cells))
		for cell, c := range cells {
			of[cell] = lateOf(c, f)
		}
		if f.Tail > 0 && slices.ContainsFunc(of, func(share float64) bool { return share > 0 }) {
			if all == nil {
				all = map[string][]float64{}
			}
			all[f.Name] = of
		}
	}
	return all
}

func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// reduced is a record without what no comparison needs.
func (r *Record) reduced(figures []compare.Figure) *Record {
	of := &Record{Version: r.Version, Cells: r.Cells}
	for _, run := range r.Runs {
		kept := RecordedRun{Cell: run.Cell, Round: run.Round, Inconclusive: run.Inconclusive, OpenLoop: run.OpenLoop, Server: run.Server, Values: map[string]Value{}}
		for _, f := range figures {
			if v, ok := run.Values[f.Name]; ok {
				kept.Values[f.Name] = v
			}
		}
		of.Runs = append(of.Runs, kept)
	}
	return of
}

// series is a figure of a cell since its last change: the runs that have it, their medians, and the shares of their requests that may be late.
func (h *History) series(f compare.Figure, cell int) (runs []string, medians, late []float64) {
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
			runs, medians, late = append(runs, r.Name), append(medians, float64(*m)), append(late, r.lateOf(f, cell))
		}
		if r.Name == since {
			break
		}
	}
	slices.Reverse(runs)
	slices.Reverse(medians)
	slices.Reverse(late)
	return runs, medians, late
}

// findChange adds a change of the level that the last run shows. Each run is judged once, by those before it: what was found stays.
func (h *History) findChange(f compare.Figure, cell int) {
	last := &h.Runs[len(h.Runs)-1]
	if last.median(f, cell) == nil {
		return
	}
	runs, medians, late := h.series(f, cell)
	values := make([]float64, len(medians))
	for i, m := range medians {
		values[i] = max(m, f.Floor)
		if f.Counted {
			values[i] = m + 1 // which may be none
		}
	}
	found, changed := compare.Latest(values, f.MarginAt(medianOf(slices.Clone(medians))))
	if !changed || lateApart(f, medianOf(slices.Clone(late[:found.At])), medianOf(slices.Clone(late[found.At:]))) { // the load generators have changed
		return
	}
	before, after := medianOf(slices.Clone(medians[:found.At])), medianOf(slices.Clone(medians[found.At:]))
	c := HistoryChange{
		Cell: last.Record.Cells[cell], Figure: f.Name, Template: last.Template, Since: runs[found.At], Found: last.Name, At: last.End,
		Change: math.Expm1(found.Shift), Worse: (found.Shift > 0) != f.HigherIsBetter,
	}
	by := compare.Signed(found.Shift)
	if f.Counted {
		c.Change = after - before
		by = f.Text(before) + " to " + f.Text(after)
	}
	h.Changes = append(h.Changes, c)
	known := slices.ContainsFunc(h.Regressions, func(r Regression) bool { return r.Cell == c.Cell && r.Figure == c.Figure && r.Unconfirmed == "" })
	if c.Worse && !known {
		message := f.Name + " " + by + " over the runs of the schedule"
		h.regress(Regression{RegressedFigure: RegressedFigure{Cell: c.Cell, Figure: c.Figure, Level: before, Message: message}, Since: c.Since, Found: c.Found})
	}
}
