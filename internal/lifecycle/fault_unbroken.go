package lifecycle

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// rehearsing decides on a dry run: it waits for no trigger and for no other fault, and for a load
// only as far as that names the Redis.
func rehearsing(o Fault, now time.Time) Decision[FaultAction] {
	if d, decided := unbegun(o, now); decided {
		return d
	}
	switch {
	case o.Load == LoadForeign:
		return onForeignLoad(o, now)
	case o.Load == LoadMissing && !o.KnowsTarget && !o.OwnLoad:
		return onMissingLoad(o, now)
	}
	if d, decided := inTrouble(o, now); decided {
		return d
	}
	return look(FaultRehearse, v1alpha1.ReasonPreparing,
		"choosing the targets and checking them: nothing is injected", now.Add(time.Second))
}

const waitingForMark = "waiting until something else breaks Redis: for the annotation " +
	v1alpha1.AnnotationMark + ", or the first anomaly or outage of the load"

// external decides on a fault that something else injects: it waits for the instant of that, and
// then only observes.
func external(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case !o.SettledAt.IsZero():
		return afterSettled(o, now)
	case o.AwaitedSince.IsZero():
		return beforeRecorded(o, now)
	case o.Abort:
		return act(FaultFinish, v1alpha1.ReasonAborted, "ended by spec.abort")
	case o.Stopped != "":
		return act(FaultFinish, v1alpha1.ReasonStopped, o.Stopped)
	case !o.InjectedAt.IsZero():
		return settling(o, now)
	}
	return awaiting(o, now)
}

func awaiting(o Fault, now time.Time) Decision[FaultAction] {
	until := o.AwaitedSince.Add(o.AwaitedFor)
	switch {
	case o.Marked:
		return act(FaultMark, v1alpha1.ReasonObserving, "")
	case overdue(o, now):
		return act(FaultFail, v1alpha1.ReasonDeadlineExceeded,
			"spec.deadline has passed: nothing has broken Redis until then")
	case loadGone(o):
		return act(FaultFail, v1alpha1.ReasonLoadTestEnded,
			fmt.Sprintf("RedisLoadTest %s ended before anything broke Redis", o.LoadName))
	case !now.Before(until):
		return act(FaultFail, v1alpha1.ReasonNotMarked,
			fmt.Sprintf("spec.action.external.waitFor: nothing broke Redis within %s%s", o.AwaitedFor,
				because(o.MarkTrouble)))
	case o.MarkTrouble != "":
		return look(FaultLook, v1alpha1.ReasonInvalidMark, o.MarkTrouble,
			earlier(until, now.Add(FaultPoll)))
	}
	return look(FaultLook, v1alpha1.ReasonWaitingForMark, waitingForMark,
		earlier(until, now.Add(FaultPoll)))
}
