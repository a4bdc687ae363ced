package engine

import (
	"fmt"
	"time"
)

// stepMargin is how far ahead a step must lie: the loops must have it before it begins.
const stepMargin = 10 * time.Millisecond

// Step sets the rate over all pods from at on, counted from the run's start: the trials of a search are decided while it runs. Rate 0 ends
// the load at at. The last step again changes nothing, nor does any after the end. It may be called while Run goes on. The error says why a step came too late or does not fit.
func (r *Runner) Step(at time.Duration, rate float64) error {
	n := r.run
	r.stepping.Lock()
	defer r.stepping.Unlock()
	p := n.pacer.Load()
	switch {
	case n.plan.Shape.Search == nil || p == nil:
		return fmt.Errorf("the load does not search: its rate is fixed")
	case !(rate >= 0) || rate > n.plan.Shape.Search.To:
		return fmt.Errorf("the rate %v is not within 0 and %v", rate, n.plan.Shape.Search.To)
	case p.stepped == at && p.stepRate == rate && at > 0, n.ended.Load():
		return nil
	case !r.launched.Load():
		return fmt.Errorf("the load has not begun")
	case at < p.stepped:
		return fmt.Errorf("a step at %v is known already, this one begins before at %v", p.stepped, at)
	case int64(at-stepMargin) < n.now():
		return fmt.Errorf("the step begins at %v, that is past", at)
	case n.length > 0 && int64(at) >= n.length:
		return fmt.Errorf("the step begins at %v, after the load's end", at)
	}
	n.pacer.Store(p.step(at, time.Duration(n.length), rate))
	n.ended.Store(rate == 0)
	for _, l := range r.loops {
		l.nudge()
	}
	return nil
}
