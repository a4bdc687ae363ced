package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/format"
)

// revert continues the revert, unless it is to be abandoned on a target.
func revert(o Fault, message string, now time.Time) Decision[FaultAction] {
	switch {
	case o.RevertErr != "":
		message += "; it is tried again: " + o.RevertErr
	case o.Progress != "":
		message += "; " + o.Progress
	}
	if slices.ContainsFunc(o.Pending, func(p Pending) bool { return o.Abandons(p, now) }) {
		return look(FaultAbandon, v1alpha1.ReasonReverting, message, now.Add(revertPoll))
	}
	return look(FaultRevert, v1alpha1.ReasonReverting, message, now.Add(revertPoll))
}

// paced keeps an injection from being called again at once.
func paced(o Fault, d Decision[FaultAction], now time.Time) Decision[FaultAction] {
	next := o.LastCalled.Add(BetweenCalls)
	if !o.LastCalled.IsZero() && now.Before(next) {
		d.Action, d.Until = FaultPause, next
	}
	return d
}

// Abandons reports whether a revert is not retried any more: on a deleted fault when it has failed
// for RevertPatience since its last step, or that step takes longer than such a step may, or all of
// them take longer than DeletedLimit; else after RevertLimit if it failed many times in a row, as
// one error after many steps is no reason to abandon the rest. This process has tried it at least
// once.
func (o Fault) Abandons(p Pending, now time.Time) bool {
	if !o.Reverting || !o.RevertTried {
		return false
	}
	took := now.Sub(o.RevertSince)
	if !o.Deleting {
		return took > RevertLimit && p.Attempts >= RevertAttempts
	}
	step, patience := o.RevertSince, RevertPatience
	if p.Moved.After(step) {
		step = p.Moved
	}
	if p.Underway {
		patience = max(patience, o.Step)
	}
	return now.Sub(step) > patience || took > DeletedLimit
}

// Ending reports whether a recorded fault ends now for a reason that only its object and namespaces
// show: the controller that reverts asks nothing else. That of an aborted setting depends on what
// else was injected on its load.
func (o Fault) Ending(now time.Time) bool {
	if o.Finished || !o.Recorded || o.RevertedAll {
		return false
	}
	return o.Deleting || o.Abort && !(o.Setting && o.InjectedAll) || o.Stopped != "" ||
		o.Breach != "" || o.Reverting || overdue(o, now)
}

// LastLook reports whether to check the effect once more before the revert begins: the fault ends
// as planned, and its effect was not observed yet. A setting was looked at when its load had ended.
func (o Fault) LastLook() bool {
	return !o.Reverting && o.Lasts > 0 && o.InjectedAll && !o.Confirmed && !o.Setting && !o.Deleting &&
		!o.Abort && o.Stopped == ""
}

// endedEarly returns why a recorded fault ends before its time; reason is "" where it does not.
func endedEarly(o Fault, now time.Time) (why, reason string, failed bool) {
	switch {
	// it had ended before: that ends the observation
	case o.Breach != "" && (o.Abort || o.Stopped != ""):
		return o.Breach, v1alpha1.ReasonStopConditionMet, false
	case o.Abort:
		return "ended by spec.abort", v1alpha1.ReasonAborted, false
	case o.Stopped != "":
		return o.Stopped, v1alpha1.ReasonStopped, false
	case o.DryRun:
		return "spec.dryRun: nothing may be injected", v1alpha1.ReasonDryRun, false
	case overdue(o, now) && !(o.whole() && o.RevertedAll): // recovery may still be observed
		return "spec.deadline has passed", v1alpha1.ReasonDeadlineExceeded, true
	case forsaken(o):
		return fmt.Sprintf("RedisLoadTest %s has not existed for %s", o.LoadName,
			format.Duration(LoadGrace)), v1alpha1.ReasonLoadTestNotFound, true
	case !o.InjectedAny && loadGone(o): // its effect could not be measured
		return fmt.Sprintf("RedisLoadTest %s ended before the fault was injected",
			o.LoadName), v1alpha1.ReasonLoadTestEnded, true
	}
	if why := alone(o); why != "" {
		return why, v1alpha1.ReasonNotBeside, true
	}
	if why := incomplete(o, now); why != "" {
		return why, o.notInjected(), true
	}
	return "", "", false
}

// alone is why a fault that is not injected would act alone that is to act beside others; "" = it
// would not.
func alone(o Fault) string {
	gone := cmp.Or(o.TooLate, o.Missing)
	if gone == "" || o.InjectedAny {
		return ""
	}
	return "spec.beside: " + gone
}

// pendingPoll is how often a fault checks a load that does not run: a change of the load test
// triggers that earlier.
const pendingPoll = 10 * time.Minute
