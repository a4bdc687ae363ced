// Package comparisons is the result of comparing the cells of an experiment: a document.
package comparisons

import (
	"fmt"

	"github.com/redquake/redquake/internal/result"
)

// Version is the version of Comparisons' JSON: it increases when a field is renamed,
// removed or means something else.
const Version = 1

// Comparisons are the cells of an experiment against their baseline. Its JSON is described in
// docs/record.md.
type Comparisons struct {
	Version    int         `json:"version"`
	Experiment *Experiment `json:"experiment,omitempty"` // nil: the runs are of none
	// of all cells; "" = it differs from cell to cell
	Baseline    string       `json:"baseline,omitempty"`
	Comparisons []Comparison `json:"comparisons"`
	// how the runs differ from what the comparison assumes
	Notes []string `json:"notes,omitempty"`
}

// Experiment is the RedisExperiment of which the cells are.
type Experiment struct {
	Name     string `json:"name"`
	Runs     int    `json:"runs"`     // as planned
	Finished int    `json:"finished"` // those of them that have ended
	// Verdict is Pass, Fail or Inconclusive. Until the experiment is complete there is none, and none
	// of the comparisons.
	Verdict string `json:"verdict,omitempty"`
	Message string `json:"message,omitempty"` // the reasons of the verdict, or why there is none
}

// Comparison is one figure of a cell against the same of its baseline. A number that was not told
// is absent: a limit of an interval that is not known is infinite.
type Comparison struct {
	Cell     string      `json:"cell"`
	Baseline string      `json:"baseline"`
	Figure   string      `json:"figure"`
	Unit     result.Unit `json:"unit"`
	Primary  bool        `json:"primary"` // a verdict is told of it; of others only the figures

	Verdict string `json:"verdict,omitempty"` // Better, Worse, Same or Inconclusive
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// NotWorse is whether it is not worse by more than the margin, Same whether it is the same within
	// it; absent if unknown.
	NotWorse *bool `json:"notWorse,omitempty"`
	Same     *bool `json:"same,omitempty"`

	Repeats         int      `json:"repeats"`
	BaselineRepeats int      `json:"baselineRepeats"`
	Inconclusive    int      `json:"inconclusive"` // runs of both that were dropped
	Median          *float64 `json:"median,omitempty"`
	BaselineMedian  *float64 `json:"baselineMedian,omitempty"`
	// MedianAtLeast and BaselineMedianAtLeast: half of the runs were not over by the deadline, so that
	// the median is this or more.
	MedianAtLeast         bool `json:"medianAtLeast,omitempty"`
	BaselineMedianAtLeast bool `json:"baselineMedianAtLeast,omitempty"`

	// Change and its interval are relative, such as -0.05 for 5 % less; of counts they are
	// differences.
	Change *float64 `json:"change,omitempty"`
	// AtLeast or AtMost, if the change is only known to be so
	Bound      string   `json:"bound,omitempty"`
	AtLeast    *float64 `json:"atLeast,omitempty"`
	AtMost     *float64 `json:"atMost,omitempty"`
	Confidence float64  `json:"confidence,omitempty"` // of the interval, from 0 to 1
	// Interval90 is the one within which the margin must hold for Same, IntervalJoint the one that
	// must leave out no difference for Better and Worse: it holds for all comparisons with a verdict
	// at once. AtLeast and AtMost are those of the one on which the verdict rests.
	Interval90    *Interval `json:"interval90,omitempty"`
	IntervalJoint *Interval `json:"intervalJoint,omitempty"`
	P             *float64  `json:"p,omitempty"`
	Method        string    `json:"method,omitempty"` // Ranks or Model
	Margin        float64   `json:"margin,omitempty"` // up to which difference the verdict is Same
	Needs         int       `json:"needs,omitempty"`  // repeats that would tell
}

// Interval is where a change lies, as Comparison.Change counts it. A limit that is absent is
// infinite; of a relative change the lower one is then -1.
type Interval struct {
	AtLeast    *float64 `json:"atLeast,omitempty"`
	AtMost     *float64 `json:"atMost,omitempty"`
	Confidence float64  `json:"confidence"`
}

// Opposed explains, in a note or none, the changes that have another sign than the difference of
// the medians beside them: a change is the middle of what the rounds show, each of which compares
// runs of about the same time.
func (c *Comparisons) Opposed() []string {
	n, first := 0, ""
	for i := range c.Comparisons {
		r := &c.Comparisons[i]
		if r.Change == nil || r.Median == nil || r.BaselineMedian == nil {
			continue
		}
		by := *r.Median - *r.BaselineMedian
		if *r.Change > 0 && by < 0 || *r.Change < 0 && by > 0 {
			if n++; n == 1 {
				first = r.Figure + " of " + r.Cell
			}
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return []string{
			"A change is the middle of the rounds' own changes: the medians of all runs point the other way in " +
				first + ".",
		}
	}
	return []string{
		fmt.Sprintf(
			"A change is the middle of the rounds' own changes: the medians of all runs point the other "+
				"way in %d comparisons, such as %s.", n, first),
	}
}
