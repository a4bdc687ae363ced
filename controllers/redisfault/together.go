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
	open, some := openTargets(s.Fault.Status.Targets)
	asking, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	begun, errs := make([]bool, len(open)), make([]error, len(open))
	atOnce(len(open), func(i int) { begun[i], errs[i] = s.Injector.Begun(asking, open[i]) })
	err := judge(asking, s, open, begun, errs, some, checkGuards)
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

// judge asks the guards about the targets that are not hit yet: together before the first is hit.
// Later they are repeated as they were judged, since the servers of the others may be starting, but
// for a fault that waits: much may have changed, so each of its targets has an error of its own.
func judge(
	ctx context.Context, s *scope.Fault, open []*v1alpha1.FaultTarget, begun []bool, errs []error,
	some bool, checkGuards guarding,
) error {
	var unhit []*v1alpha1.FaultTarget
	for i, t := range open {
		if begun[i] || t.InjectedAt != nil {
			continue
		}
		if !some {
			unhit = append(unhit, t)
		} else if s.Traits.Waits && errs[i] == nil {
			errs[i] = checkGuards(ctx, s, t)
		}
	}
	return checkGuards(ctx, s, unhit...)
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
