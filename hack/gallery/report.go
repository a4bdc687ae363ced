package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	reports "github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// report is what the gallery reads of a report's JSON (docs/reports.md).
type report struct {
	Verdict string
	Figures []struct {
		Name, Of       string
		Unit           result.Unit
		Value, AtLeast *float64
	}
	Comparisons []comparisons.Comparison
	Doubts      []struct{ Reason, Of, Message string }
}

func readReport(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// figure returns a figure of a fault, or the median of a cell.
func figure(name, of string) func(*report) (string, error) {
	return func(r *report) (string, error) {
		for _, f := range r.Figures {
			switch {
			case f.Name != name || f.Of != of:
			case f.Value != nil:
				return reports.InUnit(f.Unit, *f.Value), nil
			case f.AtLeast != nil:
				return "more than " + reports.InUnit(f.Unit, *f.AtLeast), nil
			}
		}
		return r.without(of, fmt.Errorf("the report has no %s of %s", name, of))
	}
}

// change returns the change of a figure of a cell against its baseline. The cell is the first one
// with these values.
func change(name, cell string) func(*report) (string, error) {
	return func(r *report) (string, error) {
		for i := range r.Comparisons {
			c := &r.Comparisons[i]
			if c.Figure != name || c.Cell == c.Baseline || !strings.HasPrefix(c.Cell+",", cell+",") {
				continue
			}
			text, ok := changed(c)
			if !ok {
				continue
			}
			if c.Verdict != "" {
				text += " (" + c.Verdict + ")"
			}
			return text, nil
		}
		return r.without(cell, fmt.Errorf("the report has no change of %s in %s", name, cell))
	}
}

// without says why a cell has no figure: its runs are in doubt, which is a finding, or err.
func (r *report) without(cell string, err error) (string, error) {
	for _, d := range r.Doubts {
		if d.Reason == string(compare.TooManyInconclusive) && strings.HasPrefix(d.Of+",", cell+",") {
			message, _, _ := strings.Cut(d.Message, "; ")
			return "in no figure: " + message, nil
		}
	}
	return "", err
}

// changed is the change of a figure against its baseline, of single runs, too, which have no
// interval.
func changed(c *comparisons.Comparison) (string, bool) {
	switch {
	case c.Change != nil:
		return fmt.Sprintf("%+.0f %%", 100**c.Change), true
	case c.Median != nil && c.BaselineMedian != nil && *c.BaselineMedian != 0:
		return fmt.Sprintf("%+.0f %%", 100*(*c.Median / *c.BaselineMedian - 1)), true
	}
	return "", false
}
