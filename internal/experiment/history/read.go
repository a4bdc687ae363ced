package history

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
)

// Decode reads a history of this version or an earlier one. Somebody may have edited it: what could
// not be compared or shown is refused.
func Decode(data []byte) (*History, error) {
	var is struct{ Version int }
	// whose fields may be others
	err := experiment.Decode(data, &is)
	if err == nil && is.Version > Version {
		return nil, fmt.Errorf(
			"the schedule's history has version %d, later than %d: it is of a newer version of Redquake",
			is.Version, Version)
	}
	var h History
	if err := experiment.Decode(data, &h); err != nil {
		return nil, fmt.Errorf("read the schedule's history: %w", err)
	}
	for i := range h.Runs {
		err := h.Runs[i].check(len(h.Templates[h.Runs[i].Template]))
		if err != nil {
			return nil, fmt.Errorf("read the schedule's history: %s: %w", h.Runs[i].Name, err)
		}
	}
	if err := h.checkCalled(); err != nil {
		return nil, fmt.Errorf("read the schedule's history: %w", err)
	}
	return &h, nil
}

// The most characters of texts that a status shows, as in package v1alpha1.
const (
	maxName    = 63
	maxCell    = 640
	maxFigure  = 32
	maxMessage = 512
)

// check finds what is not of a run of so many cells.
func (r *Run) check(cells int) error {
	if r.Name == "" || len(r.Name) > maxName || len(r.Confirms) > maxName {
		return fmt.Errorf("the name of a run has 1 to %d characters", maxName)
	}
	if !slices.Contains([]v1alpha1.Verdict{
		"", v1alpha1.VerdictPass, v1alpha1.VerdictFail,
		v1alpha1.VerdictInconclusive,
	}, r.Verdict) {
		return fmt.Errorf("there is no verdict %s", r.Verdict)
	}
	if len([]rune(r.Message)) > maxMessage {
		return fmt.Errorf("the message is longer than %d characters", maxMessage)
	}
	for _, all := range []map[string][]*Median{r.Medians, r.Least} {
		for figure, medians := range all {
			if len(medians) != cells {
				return fmt.Errorf("%s has %d cells, its template %d", figure, len(medians), cells)
			}
			if slices.ContainsFunc(medians, func(m *Median) bool { return m != nil && *m < 0 }) {
				return fmt.Errorf("%s is negative", figure)
			}
		}
	}
	if r.Record != nil {
		return r.Record.Check()
	}
	return nil
}

// checkCalled finds what is no regression or change.
func (h *History) checkCalled() error {
	for i, c := range h.Changes {
		if !isNamed(c.Cell, c.Figure, c.Since, c.Found) {
			return fmt.Errorf("change %d lacks its cell, figure or runs, or one of them is too long", i+1)
		}
	}
	for i, r := range h.Regressions {
		if !isNamed(r.Cell, r.Figure, r.Since, r.Found) {
			return fmt.Errorf("regression %d lacks its cell, figure or runs, or one of them is too long",
				i+1)
		}
	}
	if h.Confirming != nil && !h.Confirming.isValid() {
		return fmt.Errorf(
			"the repetition that is due lacks its run or what has regressed in it, or has %d attempts or more",
			mostRepetitions)
	}
	return nil
}

func (c *Confirming) isValid() bool {
	return len(c.Regressed) > 0 && c.Attempts >= 0 && c.Attempts < mostRepetitions &&
		!slices.ContainsFunc(c.Regressed, func(r RegressedFigure) bool {
			return !isNamed(r.Cell, r.Figure,
				c.Run)
		})
}

// isNamed reports whether there are a figure of a cell and runs that a status can name.
func isNamed(cell, figure string, runs ...string) bool {
	wrong := func(run string) bool { return run == "" || len(run) > maxName }
	return cell != "" && len([]rune(cell)) <= maxCell && figure != "" && len(figure) <= maxFigure &&
		!slices.ContainsFunc(runs, wrong)
}
