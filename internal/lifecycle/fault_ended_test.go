package lifecycle

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// endedDecisions are those of a fault that somebody or a stop condition ends, or that is finished or deleted.
var endedDecisions = []faultDecision{
	{
		"stopped before anything was broken",
		waitingFault(func(o *Fault) { o.Stopped = "ended by an annotation" }),
		20 * time.Second,
		FaultFinish,
		v1alpha1.ReasonStopped,
		"annotation",
	},
	{
		"stopped with a record",
		recordedFault(func(o *Fault) { o.Stopped = "ended by an annotation" }),
		20 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"annotation",
	},
	{"stopped, reverted", activeFault(func(o *Fault) {
		o.Stopped = "ended by an annotation"
		o.Reverting = true
		o.RevertedAll = true
	}), 25 * time.Second, FaultFinish, v1alpha1.ReasonStopped, "annotation"},
	{
		"a withdrawn stop does not stop the revert",
		activeFault(func(o *Fault) { o.Reverting = true }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{
		"nor does it break what it kept from breaking",
		recordedFault(func(o *Fault) { o.Reverting = true }),
		25 * time.Second,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{"reverted, and the reason is not visible any more", recordedFault(func(o *Fault) {
		o.Reverting = true
		o.RevertedAll = true
	}), 25 * time.Second, FaultFail, v1alpha1.ReasonInjectionFailed, "before it was complete"},

	{"steps continue", recordedFault(func(o *Fault) {
		o.InjectedAny = true
		o.Progress = "replica 1 of 2"
	}), 15 * time.Minute, FaultInject, v1alpha1.ReasonInjecting, "replica 1 of 2"},
	{"steps that never end", recordedFault(func(o *Fault) {
		o.InjectedAny = true
		o.Progress = "replica 1 of 2"
	}), 20*time.Second + StepsPatience + 1, FaultRevert, v1alpha1.ReasonReverting, "replica 1 of 2"},
	{"steps that never ended, reverted", recordedFault(func(o *Fault) {
		o.InjectedAny = true
		o.Reverting = true
		o.RevertedAll = true
		o.InjectionErr = "pod redis-0: not complete: replica 1 of 2"
	}), 20*time.Second + StepsPatience + 2, FaultFail, v1alpha1.ReasonInjectionFailed, "replica 1 of 2"},
	{"could not be reverted", activeFault(func(o *Fault) {
		o.Reverting = true
		o.RevertedAll = true
		o.RevertFailed = "pod redis-0: manually: this"
	}), 2 * time.Minute, FaultFail, v1alpha1.ReasonRevertFailed, "manually"},
	{"could not be reverted, aborted", activeFault(func(o *Fault) {
		o.Abort, o.Reverting, o.RevertedAll, o.RevertFailed = true, true, true, "pod redis-0: manually: this"
	}), 2 * time.Minute, FaultFail, v1alpha1.ReasonRevertFailed, "manually"},
	{"could not be reverted, deleted: it is released", activeFault(func(o *Fault) {
		o.Deleting, o.Reverting, o.RevertedAll, o.RevertFailed = true, true, true, "pod redis-0: manually: this"
	}), 2 * time.Minute, FaultRelease, "", ""},

	{"a stop condition is met", activeFault(func(o *Fault) {
		o.Breach = "too many errors"
		o.Reverting = true
	}), 25 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "too many errors"},
	{"a stop condition is met before it was complete", recordedFault(func(o *Fault) {
		o.InjectedAny, o.Breach, o.Reverting = true, "too many errors", true
	}), 25 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "too many errors"},
	{"ended by a stop condition: recovery is watched", activeFault(func(o *Fault) {
		o.Breach, o.Reverting, o.RevertedAll = "too many errors", true, true
	}), 26 * time.Second, FaultObserve, v1alpha1.ReasonObserving, ""},
	{"the same of one that was not complete", recordedFault(func(o *Fault) {
		o.InjectedAny = true
		o.InjectedAt = at(20 * time.Second)
		o.SettleWithin = time.Minute
		o.Breach = "too many errors"
		o.Reverting = true
		o.RevertedAll = true
		o.InjectionErr = "forbidden"
	}), 55 * time.Second, FaultObserve, v1alpha1.ReasonObserving, ""},
	{"ended by a stop condition, settled", activeFault(func(o *Fault) {
		o.Breach, o.Reverting, o.RevertedAll, o.Settled = "too many errors", true, true, true
	}), 40 * time.Second, FaultFinish, v1alpha1.ReasonStopConditionMet, "too many errors"},
	{"ended by a stop condition, and its losses are known", activeFault(func(o *Fault) {
		o.Breach, o.Reverting, o.RevertedAll, o.SettledAt = "too many errors", true, true, at(40*time.Second)
	}), 60 * time.Second, FaultFinish, v1alpha1.ReasonStopConditionMet, "too many errors"},
	{"an abort after the stop condition ends the observation", activeFault(func(o *Fault) {
		o.Abort, o.Breach, o.Reverting, o.RevertedAll = true, "too many errors", true, true
	}), 26 * time.Second, FaultFinish, v1alpha1.ReasonStopConditionMet, "too many errors"},
	{"ended by a stop condition, and could not be reverted", activeFault(func(o *Fault) {
		o.Breach, o.Reverting, o.RevertedAll, o.RevertFailed = "too many errors", true, true, "pod redis-0: manually: this"
	}), 2 * time.Minute, FaultFail, v1alpha1.ReasonRevertFailed, "manually"},

	{"finished: the finalizer is removed", Fault{Life: Life{Finished: true, Finalizer: true}}, 0, FaultRelease, "", ""},
	{"finished", Fault{Life: Life{Finished: true}}, 0, FaultWait, "", ""},
	{
		"expired",
		Fault{Life: Life{Finished: true, CompletedAt: epoch}, Asked: Asked{TTL: new(time.Minute)}},
		time.Minute,
		FaultExpire,
		"",
		"",
	},
	{"deleted before anything", Fault{Life: Life{Deleting: true, Finalizer: true}}, 0, FaultRelease, "", ""},
	{
		"deleted with a record: revert first",
		recordedFault(func(o *Fault) { o.Deleting = true }),
		0,
		FaultRevert,
		v1alpha1.ReasonReverting,
		"",
	},
	{"deleted, reverted", injectedFault(func(o *Fault) { o.Deleting = true }), 0, FaultRelease, "", ""},
	{
		"deleted before the finalizer",
		Fault{Life: Life{Deleting: true}, Injection: Injection{Recorded: true}},
		0,
		FaultWait,
		"",
		"",
	},
	{"deleted when it was over", activeFault(func(o *Fault) {
		o.Deleting = true
		o.Finished = true
	}), 0, FaultRelease, "", ""},
	{"deleted, let go", Fault{Life: Life{Deleting: true}}, 0, FaultWait, "", ""},
}
