package load

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// conductor runs a search in this process: it evaluates each trial from the record and sets the
// next rate of the runner.
type conductor struct {
	plan       *plan.Plan
	objectives *v1alpha1.Objectives
	step       func(at time.Duration, rate float64) error // engine.Runner.Step
	note       func(string)
	giveUp     func(error)

	trials   []search.Trial
	next     search.Next
	message  string
	ended    bool
	rejected int // consecutive rejections
}

// maxRejections is how often in a row the runner may reject a rate, which happens if this process
// was stalled.
const maxRejections = 20

// newConductor returns nil for a plan without a search.
func newConductor(
	plan *plan.Plan, objectives *v1alpha1.Objectives, step func(time.Duration, float64) error,
	note func(string), giveUp func(error),
) *conductor {
	spec := plan.Shape.Search
	if spec == nil {
		return nil
	}
	c := &conductor{
		plan:       plan,
		objectives: objectives,
		step:       step,
		note:       note,
		giveUp:     giveUp,
	}
	// the runner starts with this rate
	c.trials = []search.Trial{{Rate: spec.From, At: plan.Shape.MeasuredFrom()}}
	return c
}

// interval evaluates the record, which is complete up to known, at the instant now. Both count from
// the start.
func (c *conductor) interval(series *merged.Series, known, now time.Duration) {
	if c == nil || c.ended {
		return
	}
	spec := search.Spec(*c.plan.Shape.Search)
	c.trials, _ = spec.Judge(c.trials, known,
		func(t search.Trial, from, to time.Duration) search.Judgement {
			judgement := verdict.Trial(c.objectives, c.plan, t.Rate,
				summary.SummarizeWindow(series, from, to), summary.StallsWithin(series, from, to))
			outcome := "meets the objectives"
			switch {
			case judgement.Void:
				outcome = "cannot be evaluated and is tried again"
				if judgement.Why != "" {
					outcome += ": " + judgement.Why
				}
			case !judgement.Met:
				outcome = "misses: " + judgement.Why
			}
			c.note(fmt.Sprintf("trial %d: %s/s %s", len(c.trials), format.Rate(t.Rate), outcome))
			return judgement
		})
	c.next = spec.Next(c.trials)
	c.message = c.next.Message
	trial := search.Trial{Rate: c.next.Rate, At: search.Begin(max(known, now), c.plan.Interval)}
	_, end := spec.Window(trial)
	switch {
	case c.next.Over:
		c.end(trial.At)
	case c.next.Rate > 0 && end > c.plan.Shape.Length():
		c.message = c.next.CutOff()
		c.end(trial.At)
	case c.next.Rate > 0 && c.setRate(trial.At, trial.Rate):
		c.trials = append(c.trials, trial)
	}
}

func (c *conductor) end(at time.Duration) {
	// A load that ends anyway needs no step to 0.
	c.ended = at >= c.plan.Shape.Length() || c.setRate(at, 0)
}

// setRate sets the runner's rate. If it is rejected, the next interval decides again.
func (c *conductor) setRate(at time.Duration, rate float64) bool {
	err := c.step(at, rate)
	if err == nil {
		c.rejected = 0
		return true
	}
	if c.rejected++; c.rejected == maxRejections {
		c.ended = true
		c.giveUp(fmt.Errorf("continue the search: %w", err))
	}
	return false
}

// outcome returns the result of the search; nil without a search.
func (c *conductor) outcome() *result.Search {
	if c == nil {
		return nil
	}
	return &result.Search{
		Rate:    c.next.Found,
		Done:    c.next.Done,
		Message: c.message,
		Tried:   c.trials,
	}
}
