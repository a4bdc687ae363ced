package engine

import (
	"errors"
	"fmt"
	"time"
)

// stepMargin is the minimum time between a call of Step and the instant it sets: the loops must apply the step before it begins.
const stepMargin = 10 * time.Millisecond

// Step sets the rate over all pods from at on, counted from the start of the run: the trials of a search are decided while it runs. Rate 0 ends
// the load at at. Repeating the last step has no effect, nor has any step after the end. It is safe for use during Run. The error states why a step
// is too late or invalid.
func (r *Runner) Step(at time.Duration, rate float64) error {
	n := r.run
	r.stepping.Lock()
	defer r.stepping.Unlock()
	p := n.pacer.Load()
	switch {
	case n.plan.Shape.Search == nil || p == nil:
		return errors.New("the load has a fixed rate: it does not search for one")
	case !(rate >= 0) || rate > n.plan.Shape.Search.To:
		return fmt.Errorf("the rate %v is not between 0 and %v", rate, n.plan.Shape.Search.To)
	case p.stepped == at && p.stepRate == rate && at > 0, n.ended.Load():
		return nil
	case !r.launched.Load():
		return errors.New("the load has not started")
	case at < p.stepped:
		return fmt.Errorf("the step at %v is before the previous step at %v", at, p.stepped)
	case int64(at-stepMargin) < n.Now():
		return fmt.Errorf("the step at %v is in the past", at)
	case n.length > 0 && int64(at) >= n.length:
		return fmt.Errorf("the step at %v is after the end of the load", at)
	}
	n.pacer.Store(p.step(at, time.Duration(n.length), rate))
	n.ended.Store(rate == 0)
	for _, l := range r.loops {
		l.nudge()
	}
	return nil
}
