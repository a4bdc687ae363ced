package lifecycle

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// activeDecisions are those of a fault that is active, or has a deadline.
var activeDecisions = []faultDecision{
	{"active: it stays", activeFault(nil), 25 * time.Second, FaultHold, v1alpha1.ReasonActive, ""},
	{"stayed for its time", activeFault(nil), 52 * time.Second, FaultRevert, v1alpha1.ReasonReverting, ""},
	{
		"active, and the load ended: it is not measured any more",
		activeFault(func(o *Fault) { o.Load = LoadEnded }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{
		"active, and the load failed",
		activeFault(func(o *Fault) { o.Load = LoadFailed }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{
		"active, and the load is missing",
		activeFault(func(o *Fault) { o.Load = LoadMissing }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{
		"active, and this process does not collect yet: it stays",
		activeFault(func(o *Fault) { o.Load = LoadPending }),
		25 * time.Second,
		FaultHold,
		v1alpha1.ReasonActive,
		"",
	},
	{
		"active, aborted",
		activeFault(func(o *Fault) { o.Abort = true }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"spec.abort",
	},
	{
		"active, stopped",
		activeFault(func(o *Fault) { o.Stopped = "ended by an annotation" }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"annotation",
	},
	{
		"active, suspended: abort ends it, not this",
		activeFault(func(o *Fault) { o.Suspend = true }),
		25 * time.Second,
		FaultHold,
		v1alpha1.ReasonActive,
		"",
	},
	{"active at the deadline", activeFault(func(o *Fault) {
		o.Deadline = at(25 *
			time.Second)
	}), 25 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "spec.deadline"},
	{
		"active, deleted",
		activeFault(func(o *Fault) { o.Deleting = true }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"deleted",
	},
	{"reverted, and recovery is watched", activeFault(func(o *Fault) {
		o.Reverting = true
		o.RevertedAll = true
	}), 53 * time.Second, FaultObserve, v1alpha1.ReasonObserving, ""},
	{"reverted in time, recovery is watched past the deadline", activeFault(func(o *Fault) {
		o.Reverting, o.RevertedAll, o.Deadline = true, true, at(52*time.Second)
	}), 53 * time.Second, FaultObserve, v1alpha1.ReasonObserving, ""},
	{"reverted by the deadline before it was complete", recordedFault(func(o *Fault) {
		o.InjectedAny, o.Reverting, o.RevertedAll, o.Deadline = true, true, true, at(30*time.Second)
	}), 31 * time.Second, FaultFail, v1alpha1.ReasonDeadlineExceeded, "spec.deadline"},
	{"not injected by the deadline", waitingFault(func(o *Fault) {
		o.Suspend = true
		o.Deadline = at(time.Hour)
	}), time.Hour, FaultFail, v1alpha1.ReasonDeadlineExceeded, "spec.deadline"},
}
