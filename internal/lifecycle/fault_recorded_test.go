package lifecycle

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// recordedDecisions are those from the record on, until the fault is active or over.
var recordedDecisions = []faultDecision{
	{"recorded, not broken", recordedFault(nil), 20 * time.Second, FaultInject, v1alpha1.ReasonInjecting, ""},
	{
		"recorded: a suspension comes too late",
		recordedFault(func(o *Fault) { o.Suspend = true }),
		20 * time.Second,
		FaultInject,
		v1alpha1.ReasonInjecting,
		"",
	},
	{
		"recorded, and the load is missing: revert, as it may be injected",
		recordedFault(func(o *Fault) { o.Load = LoadMissing }),
		20 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{"recorded, the load ended, reverted", recordedFault(func(o *Fault) {
		o.Load = LoadEnded
		o.RevertedAll = true
	}), 20 * time.Second, FaultFail, v1alpha1.ReasonLoadTestEnded, ""},
	{
		"a record that nothing was done by is too old: roles may have changed",
		recordedFault(func(o *Fault) { o.Collected = true }),
		31 * time.Second,
		FaultRenew,
		v1alpha1.ReasonInjecting,
		"too old",
	},
	{
		"it is old enough only after its time",
		recordedFault(func(o *Fault) { o.Collected = true }),
		30 * time.Second,
		FaultInject,
		v1alpha1.ReasonInjecting,
		"",
	},
	{"an old record that was acted on", recordedFault(func(o *Fault) {
		o.Collected = true
		o.Attempted = true
	}), 31 * time.Second, FaultInject, v1alpha1.ReasonInjecting, ""},
	{"an old record, and a target is broken", recordedFault(func(o *Fault) {
		o.Collected = true
		o.Begun = true
	}), 31 * time.Second, FaultInject, v1alpha1.ReasonInjecting, ""},
	{
		"an old record, and the load is not available", recordedFault(nil), 31 * time.Second, FaultInject,
		v1alpha1.ReasonInjecting, "",
	},
	{"what an old record prepared cannot be reverted", recordedFault(func(o *Fault) {
		o.Collected = true
		o.InjectionErr = "conflict"
	}), 51 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "conflict"},
	{
		"another fault is ahead on the same load",
		waitingFault(func(o *Fault) { o.Taken = true }),
		20 * time.Second,
		FaultWait,
		v1alpha1.ReasonWaitingForSteady,
		"another fault",
	},
	{"called a moment ago: not at once again", recordedFault(func(o *Fault) {
		o.LastCalled = at(20 *
			time.Second)
	}), 20*time.Second + BetweenCalls - 1, FaultPause, v1alpha1.ReasonInjecting, ""},
	{"and then again", recordedFault(func(o *Fault) {
		o.LastCalled = at(20 *
			time.Second)
	}), 20*time.Second + BetweenCalls, FaultInject, v1alpha1.ReasonInjecting, ""},
	{
		"a revert that goes on", failing(revertingFault(0, 0), "", "1 of 3 pods rolled"), time.Hour, FaultRevert,
		v1alpha1.ReasonReverting, "reverting the fault; 1 of 3 pods rolled",
	},
	{
		"a revert that errs says why", failing(revertingFault(3, 0), "pod redis-0: refused", ""), time.Hour, FaultRevert,
		v1alpha1.ReasonReverting, "reverting the fault; it is tried again: pod redis-0: refused",
	},
	{"a revert that errs", revertingFault(99, 0), time.Hour, FaultRevert, v1alpha1.ReasonReverting, ""},
	{
		"that errs for too long", revertingFault(10, 0), 60*time.Second + RevertLimit + 1, FaultAbandon,
		v1alpha1.ReasonReverting, "",
	},
	{
		"that errs, but not often", revertingFault(9, 0), 60*time.Second + RevertLimit + 1, FaultRevert,
		v1alpha1.ReasonReverting, "",
	},
	{
		"that takes steps, and the object is being deleted", revertingFault(0, 60*time.Second), 100*time.Second + 1,
		FaultAbandon, v1alpha1.ReasonReverting, "",
	},
	{
		"the deletion came later", revertingFault(0, 70*time.Second), 101 * time.Second, FaultRevert,
		v1alpha1.ReasonReverting, "",
	},
	{"not tried by this process", untried(revertingFault(99, 0)), time.Hour, FaultRevert, v1alpha1.ReasonReverting, ""},
	{
		"injection errs",
		recordedFault(func(o *Fault) { o.InjectionErr = "conflict" }),
		25 * time.Second,
		FaultInject,
		v1alpha1.ReasonInjecting,
		"conflict",
	},
	{"injection errs for too long: revert first", recordedFault(func(o *Fault) {
		o.InjectedAny = true
		o.InjectionErr = "forbidden"
	}), 51 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "forbidden"},
	{"then fail", recordedFault(func(o *Fault) {
		o.InjectionErr = "forbidden"
		o.RevertedAll = true
	}), 51 * time.Second, FaultFail, v1alpha1.ReasonInjectionFailed, "forbidden"},
	{"what is not supported fails as that", recordedFault(func(o *Fault) {
		o.InjectionErr, o.NotSupported = "the kernel has no sch_netem", true
		o.RevertedAll = true
	}), 51 * time.Second, FaultFail, v1alpha1.ReasonNotSupported, "sch_netem"},
	{
		"abort with a record: revert first",
		recordedFault(func(o *Fault) { o.Abort = true }),
		20 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"abort",
	},
	{
		"abort, reverted",
		injectedFault(func(o *Fault) { o.Abort = true }),
		21 * time.Second,
		FaultFinish,
		v1alpha1.ReasonAborted,
		"",
	},
	{
		"injected, not reverted",
		injectedFault(func(o *Fault) { o.RevertedAll = false }),
		20 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{"recovery is watched", injectedFault(nil), 21 * time.Second, FaultObserve, v1alpha1.ReasonObserving, ""},
	{
		"settled",
		injectedFault(func(o *Fault) { o.Settled = true }),
		40 * time.Second,
		FaultFinish,
		v1alpha1.ReasonSucceeded,
		"",
	},
	{
		"the load test was deleted",
		injectedFault(func(o *Fault) { o.Load = LoadMissing }),
		40 * time.Second,
		FaultFinish,
		v1alpha1.ReasonSucceeded,
		"",
	},
	{"settled, and its losses are not known", injectedFault(func(o *Fault) {
		o.Settled = true
		o.LossesPending = true
	}), 40 * time.Second, FaultSettle, v1alpha1.ReasonWaitingForLosses, "reads back"},
	{"waits for its losses", injectedFault(func(o *Fault) {
		o.SettledAt = at(40 * time.Second)
		o.LossesPending = true
	}), 60 * time.Second, FaultWait, v1alpha1.ReasonWaitingForLosses, "reads back"},
	{"waits for its losses, however long", injectedFault(func(o *Fault) {
		o.SettledAt, o.LossesPending, o.Deadline = at(40*time.Second), true, at(50*time.Second)
	}), time.Hour, FaultWait, v1alpha1.ReasonWaitingForLosses, "reads back"},
	{"its losses are known", injectedFault(func(o *Fault) {
		o.SettledAt = at(40 *
			time.Second)
	}), 60 * time.Second, FaultFinish, v1alpha1.ReasonSucceeded, ""},
	{"an abort ends the wait for its losses", injectedFault(func(o *Fault) {
		o.SettledAt = at(40 * time.Second)
		o.LossesPending = true
		o.Abort = true
	}), 60 * time.Second, FaultFinish, v1alpha1.ReasonSucceeded, ""},
	{"never settled", injectedFault(nil), 81 * time.Second, FaultFinish, v1alpha1.ReasonSucceeded, ""},
}
