package engine

import (
	"errors"
	"fmt"
	"time"
)

// stepMargin is the minimum time between a call of Step and the instant it sets: the loops must
// apply the step before it begins.
const stepMargin = 10 * time.Millisecond

// Step sets the rate over all pods from at on, counted from the start of the run: the trials of a
// search are decided while it runs. Rate 0 ends the load at at. Repeating the last step has no
// effect, nor has any step after the end. It is safe for use during Run. The error states why a
// step is too late or invalid.
func (r *Runner) Step(at time.Duration, rate float64) error {
	n := r.run
	r.stepping.Lock()
	defer r.stepping.Unlock()
	p := n.Pacer.Load()
	switch {
	case n.Plan.Shape.Search == nil || p == nil:
		return errors.New("the load has a fixed rate: it does not search for one")
	case !(rate >= 0) || rate > n.Plan.Shape.Search.To:
		return fmt.Errorf("the rate %v is not between 0 and %v", rate, n.Plan.Shape.Search.To)
	case p.Stepped == at && p.StepRate == rate && at > 0, n.Ended.Load():
		return nil
	case !r.launched.Load():
		return errors.New("the load has not started")
	case at < p.Stepped:
		return fmt.Errorf("the step at %v is before the previous step at %v", at, p.Stepped)
	case int64(at-stepMargin) < n.Now():
		return fmt.Errorf("the step at %v is in the past", at)
	case n.Length > 0 && int64(at) >= n.Length:
		return fmt.Errorf("the step at %v is after the end of the load", at)
	}
	n.Pacer.Store(p.Step(at, time.Duration(n.Length), rate))
	n.Ended.Store(rate == 0)
	for _, l := range r.loops {
		l.Nudge()
	}
	return nil
}
