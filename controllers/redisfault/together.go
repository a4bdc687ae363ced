package redisfault

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/internal/faultrun"
)

// hitAtOnce is how many targets are hit at a time.
const hitAtOnce = 256

// injectTogether is injectAll of a fault that breaks all its targets at once: the guards judge all
// of them before the first is hit, and nothing is asked in between. The intent of each was stored
// with its record: where this process ends on the way, the next one sees by Begun what it has done.
func (r *Reconciler) injectTogether(
	ctx context.Context, s *scope.Fault, checkGuards guarding,
) (all bool, refused error) {
	var unhit []*v1alpha1.FaultTarget
	open, some := openTargets(s.Fault.Status.Targets)
	asking, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	begun, errs := make([]bool, len(open)), make([]error, len(open))
	atOnce(len(open), func(i int) { begun[i], errs[i] = s.Injector.Begun(asking, open[i]) })
	for i, t := range open {
		if !begun[i] && t.InjectedAt == nil {
			unhit = append(unhit, t)
		}
	}
	if some { // they were judged together with those that are hit, whose servers may be starting
		unhit = nil
	}
	err := checkGuards(asking, s, unhit...)
	// what a process that has died began cannot be left, and selected again
	if !some && !slices.Contains(begun, true) && !s.Seen.Attempted && turns.MayPass(err) {
		return false, err
	}
	calls := make([]injection, len(open))
	hitting, end := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer end()
	atOnce(len(open), func(i int) {
		why := errs[i]
		if why == nil && !begun[i] && open[i].InjectedAt == nil {
			why = err
		}
		calls[i] = r.hit(hitting, s, open[i], begun[i], why)
	})
	all = true
	for i, t := range open {
		r.note(hitting, s, t, calls[i])
		r.conclude(ctx, s, t, calls[i])
		all = all && t.ActiveAt != nil
	}
	return all, nil
}

// openTargets are the targets that are not active yet, and whether some were hit.
func openTargets(targets []v1alpha1.FaultTarget) (open []*v1alpha1.FaultTarget, some bool) {
	for i := range targets {
		t := &targets[i]
		some = some || t.InjectedAt != nil
		if t.ActiveAt == nil {
			open = append(open, t)
		}
	}
	return open, some
}

// atOnce calls f for each number below n, many at a time.
func atOnce(n int, f func(i int)) {
	var all errgroup.Group
	all.SetLimit(hitAtOnce)
	for i := range n {
		all.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = all.Wait() // no call returns an error
}
