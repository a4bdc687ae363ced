package lifecycle

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// settingUnbegun decides on a setting that has not begun: it comes before its load, so that it
// waits for no trigger.
func settingUnbegun(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case o.Load == LoadFailed:
		return act(FaultFail, v1alpha1.ReasonLoadTestFailed,
			fmt.Sprintf("RedisLoadTest %s failed before the setting was injected: %s", o.LoadName,
				o.LoadMessage))
	case loadGone(o):
		return act(FaultFail, v1alpha1.ReasonLoadTestEnded,
			fmt.Sprintf("RedisLoadTest %s ended before the setting was injected", o.LoadName))
	case !o.KnowsTarget:
		message := fmt.Sprintf(
			"RedisLoadTest %s does not exist yet, and would name the Redis: set spec.target to inject the setting before",
			o.LoadName)
		return look(FaultWait, v1alpha1.ReasonWaitingForLoad, message, nextLook(o, now))
	}
	return onTurn(o, now)
}

// LoadOver reports whether the load of a setting is over.
func (o Fault) LoadOver() bool {
	return loadGone(o)
}

// LoadGrace is how long a setting in force waits for a load test that does not exist: it is applied
// next, or was deleted to be corrected. An experiment whose run cannot be created, as beyond a
// quota, gives up before and reverts its settings itself.
const LoadGrace = 10 * time.Minute

// settingGone reports whether the load of a setting is over. One that does not exist may still
// come, unless it had begun.
func settingGone(o Fault) bool {
	return o.Load == LoadFailed || o.Load == LoadEnded ||
		o.Load == LoadMissing && !o.LoadStart.IsZero()
}

// forsaken reports whether a setting is in force for a load that does not come.
func forsaken(o Fault) bool {
	return o.Setting && o.InjectedAll && o.Load == LoadMissing && o.LoadStart.IsZero() &&
		o.LoadAbsent >= LoadGrace
}

// LookAgain is for how long a setting whose load has ended is looked at again, if Redis does not
// say whether it is still there.
const LookAgain = 10 * time.Second

// closing decides on a setting whose load has ended, or that is aborted. Before its revert it
// keeps others from beginning beside it, is looked at once more, and waits for what was injected
// later on the same load, for as long as an injection of several steps may take. What ends a fault
// otherwise ends it at once.
func closing(o Fault, now time.Time) (d Decision[FaultAction], decided bool) {
	why := closesFor(o, now)
	if why == "" {
		return d, false
	}
	for _, wait := range []struct {
		is   bool
		most time.Duration
		say  string
	}{
		{true, 0, "the setting is looked at once more, then reverted"},
		{o.Unseen && !o.Abort, LookAgain, "whether the setting is still there is not known yet"},
		{
			o.Later != "", StepsPatience,
			fmt.Sprintf("RedisFault %s, which was injected later on the same load, is reverted first",
				o.Later),
		},
	} {
		end := o.ClosingSince.Add(wait.most)
		if wait.is && (o.ClosingSince.IsZero() || now.Before(end)) {
			return look(FaultClose, v1alpha1.ReasonReverting, why+": "+wait.say, now.Add(FaultPoll)), true
		}
	}
	return d, false
}

// closesFor is why a setting that is in force is to end, if that can wait; "" if it is not, or at
// once.
func closesFor(o Fault, now time.Time) string {
	switch {
	case !o.Setting || !o.InjectedAll || o.RevertedAll || o.Reverting || o.DryRun:
		return ""
	case o.Stopped != "" || o.Breach != "" || overdue(o, now) || !now.Before(o.endOfEffect()):
		return ""
	case o.Abort:
		return "spec.abort"
	case loadGone(o):
		return loadOver(o)
	}
	return ""
}

// loadOver says how a load ended.
func loadOver(o Fault) string {
	how := map[LoadState]string{LoadFailed: "failed", LoadMissing: "was deleted"}[o.Load]
	if how == "" {
		how = "has ended"
	}
	return fmt.Sprintf("RedisLoadTest %s %s", o.LoadName, how)
}

// endOfSetting says why a setting is reverted in the ordinary course; "" for other faults.
func endOfSetting(o Fault) string {
	switch {
	case !o.Setting:
		return ""
	case loadGone(o):
		return loadOver(o) + ": reverting the setting"
	}
	return "spec.duration has passed: reverting the setting"
}
