package history

import (
	"fmt"
	"slices"
)

// mostRepetitions is how many repetitions of a run there are of which none can tell.
const mostRepetitions = 3

// compared takes over what the comparison with an earlier run shows.
func (h *History) compared(e Ended) {
	fresh := e.Regressed
	if h.Confirming != nil {
		fresh = h.settle(h.Confirming, e)
	}
	switch {
	case e.Confirms != "" || len(fresh) == 0: // what the repetition alone shows was not repeated
		return
	case !e.Confirm:
		for _, r := range fresh {
			h.regress(Regression{
				RegressedFigure: r,
				Since:           e.Name,
				Found:           e.Name,
			})
		}
		return
	case h.Confirming != nil:
		h.unconfirmed("then " + e.Name + " was to be repeated")
	}
	h.Confirming = &Confirming{
		Run:       e.Name,
		Against:   e.Against,
		Template:  e.Template,
		Regressed: fresh,
	}
}

// settle calls the regressions that a second run against the same earlier one shows as well: the
// repetition, or the run of the next scheduled time. It returns what else has regressed in that
// run.
func (h *History) settle(c *Confirming, e Ended) (others []RegressedFigure) {
	switch {
	case e.Confirms != c.Run && e.Against != c.Against:
		h.unconfirmed(e.Name + " was compared with another run")
		return e.Regressed
	case e.Lacks != "":
		h.inconclusive(e.Name + ": " + e.Lacks)
		return nil
	}
	run, unknown := &h.Runs[len(h.Runs)-1], []RegressedFigure(nil)
	for _, r := range c.Regressed {
		if i := slices.IndexFunc(e.Regressed, r.isSame); i >= 0 {
			h.regress(Regression{
				RegressedFigure: e.Regressed[i],
				Since:           c.Run,
				Found:           e.Name,
			})
		} else if !run.has(r) || slices.ContainsFunc(e.Waited, r.isSame) {
			unknown = append(unknown, r)
		}
	}
	others = slices.DeleteFunc(slices.Clone(e.Regressed), func(r RegressedFigure) bool {
		return slices.ContainsFunc(c.Regressed, r.isSame)
	})
	if c.Regressed = unknown; len(unknown) > 0 {
		why := "too few conclusive runs for " + unknown[0].Figure
		if run.has(unknown[0]) {
			why = "the load generators did not run for so long that " + unknown[0].Figure + " is unknown"
		}
		h.inconclusive(fmt.Sprintf("%s: %s: %s", e.Name, unknown[0].Cell, why))
	} else {
		h.Confirming = nil
	}
	return others
}

func (r RegressedFigure) isSame(o RegressedFigure) bool {
	return r.Cell == o.Cell && r.Figure == o.Figure
}

// has reports whether a run has the median of a figure.
func (r *Run) has(of RegressedFigure) bool {
	cell, medians := slices.Index(r.Record.Cells, of.Cell), r.Medians[of.Figure]
	return cell >= 0 && cell < len(medians) && medians[cell] != nil
}

// inconclusive counts an inconclusive repetition. After the last one nothing is known but what the
// first run shows.
func (h *History) inconclusive(why string) {
	c := h.Confirming
	c.Attempts++
	if c.Why = why; c.Attempts >= mostRepetitions {
		h.unconfirmed(why)
	}
}

// unconfirmed calls regressions that could not be repeated: they must not vanish with the run that
// shows them.
func (h *History) unconfirmed(why string) {
	c := h.Confirming
	h.Confirming = nil
	for _, r := range c.Regressed {
		h.regress(Regression{
			RegressedFigure: r,
			Since:           c.Run,
			Found:           c.Run,
			Unconfirmed:     why,
		})
	}
}

// regress adds a regression. One that lasts keeps its begin and the level before, and stays
// confirmed.
func (h *History) regress(r Regression) {
	i := slices.IndexFunc(h.Regressions, func(o Regression) bool {
		return o.isSame(r.RegressedFigure)
	})
	if i < 0 {
		h.Regressions = append(h.Regressions, r)
		return
	}
	old := h.Regressions[i]
	if r.Since, r.Level = old.Since, old.Level; old.Unconfirmed == "" {
		r.Unconfirmed = ""
	}
	h.Regressions[i] = r
}
