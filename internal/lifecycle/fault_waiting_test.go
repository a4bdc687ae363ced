package lifecycle

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// waitingDecisions are those before anything is recorded.
var waitingDecisions = []faultDecision{
	{
		"nothing before the finalizer",
		Fault{MeasuringLoad: MeasuringLoad{Load: LoadRunning}, Trigger: Trigger{Steady: true}},
		0,
		FaultAddFinalizer,
		v1alpha1.ReasonPending,
		"",
	},
	{
		"nothing before it is noted",
		waitingFault(func(o *Fault) { o.Noted = false }),
		20 * time.Second,
		FaultAddFinalizer,
		v1alpha1.ReasonPending,
		"",
	},
	{"a held one has not begun", waitingFault(func(o *Fault) {
		o.Noted = false
		o.Suspend = true
	}), 0, FaultWait, v1alpha1.ReasonSuspended, ""},
	{"a copy of one that had begun", waitingFault(func(o *Fault) {
		o.Noted = false
		o.Restored = "a copy"
	}), 20 * time.Second, FaultFinish, v1alpha1.ReasonRestored, "a copy"},
	{
		"such a copy, held",
		Fault{Life: Life{Restored: "a copy"}, Asked: Asked{Suspend: true}},
		0,
		FaultFinish,
		v1alpha1.ReasonRestored,
		"a copy",
	},
	{
		"such a copy, deleted",
		Fault{Life: Life{Restored: "a copy", Deleting: true, Finalizer: true}},
		0,
		FaultRelease,
		"",
		"",
	},
	{
		"recorded, and the note was removed: the fault goes on",
		recordedFault(func(o *Fault) { o.Noted = false }),
		20 * time.Second,
		FaultInject,
		v1alpha1.ReasonInjecting,
		"",
	},
	{
		"the load may still come",
		waitingFault(func(o *Fault) { o.Load = LoadMissing }),
		time.Second,
		FaultWait,
		v1alpha1.ReasonLoadTestNotFound,
		"cache",
	},
	{
		"it may still come until its timeout",
		waitingFault(func(o *Fault) { o.Load = LoadMissing }),
		time.Minute - time.Second,
		FaultWait,
		v1alpha1.ReasonLoadTestNotFound,
		"cache",
	},
	{
		"it did not",
		waitingFault(func(o *Fault) { o.Load = LoadMissing }),
		time.Minute,
		FaultFail,
		v1alpha1.ReasonLoadTestNotFound,
		"cache",
	},
	{"its own load is made", waitingFault(func(o *Fault) {
		o.Load = LoadMissing
		o.OwnLoad = true
	}), 0, FaultMakeLoad, v1alpha1.ReasonPreparing, ""},
	{"the load failed", waitingFault(func(o *Fault) {
		o.Load = LoadFailed
		o.LoadMessage = "no Redis"
	}), 0, FaultFail, v1alpha1.ReasonLoadTestFailed, "no Redis"},
	{
		"the load ended first",
		waitingFault(func(o *Fault) { o.Load = LoadEnded }),
		0,
		FaultFail,
		v1alpha1.ReasonLoadTestEnded,
		"",
	},
	{"the load ended while there was no target", waitingFault(func(o *Fault) {
		o.Load = LoadEnded
		o.Trouble = &problem.Problem{Message: "no replica answers"}
	}), 0, FaultFail, v1alpha1.ReasonLoadTestEnded, "injected: no replica answers"},
	{
		"the load warms up",
		waitingFault(func(o *Fault) { o.Load = LoadPending }),
		0,
		FaultWait,
		v1alpha1.ReasonWaitingForLoad,
		"",
	},
	{"held before its own load is made", waitingFault(func(o *Fault) {
		o.Suspend = true
		o.Load = LoadMissing
		o.OwnLoad = true
	}), time.Hour, FaultWait, v1alpha1.ReasonSuspended, ""},
	{"its load's name is another's", waitingFault(func(o *Fault) {
		o.Load = LoadForeign
		o.OwnLoad = true
	}), time.Second, FaultWait, v1alpha1.ReasonPreparing, "another object"},
	{"and stays it", waitingFault(func(o *Fault) {
		o.Load = LoadForeign
		o.OwnLoad = true
	}), time.Minute, FaultFail, v1alpha1.ReasonLoadTestNotFound, "cache"},
	{"a secret is missing at the trigger", waitingFault(func(o *Fault) {
		o.Problem = &problem.Problem{
			Reason:  v1alpha1.ReasonSecretNotFound,
			Message: "gone",
		}
	}), time.Hour, FaultWait, v1alpha1.ReasonSecretNotFound, "gone"},
	{"held", waitingFault(func(o *Fault) { o.Suspend = true }), 0, FaultWait, v1alpha1.ReasonSuspended, ""},
	{"not steady", waitingFault(func(o *Fault) {
		o.Steady = false
		o.SteadyWhy = "varies by 12 %"
	}), 20 * time.Second, FaultWait, v1alpha1.ReasonWaitingForSteady, "12 %"},
	{"never steady", waitingFault(func(o *Fault) {
		o.Steady = false
		o.SteadyWhy = "varies by 12 %"
	}), 68 * time.Second, FaultFail, v1alpha1.ReasonNotSteady, "12 %"},
	{"not yet time", waitingFault(func(o *Fault) {
		o.After = new(30 * time.Second)
		o.Steady = false
	}), 29 * time.Second, FaultWait, v1alpha1.ReasonWaitingForTime, "30s"},
	{"time, steady or not", waitingFault(func(o *Fault) {
		o.After = new(30 * time.Second)
		o.Steady = false
	}), 30 * time.Second, FaultRecord, v1alpha1.ReasonInjecting, ""},
	{"none to act beside", waitingFault(func(o *Fault) {
		o.Missing = "there is no RedisFault first"
	}), 20 * time.Second, FaultWait, v1alpha1.ReasonWaitingForFault, "spec.beside: there is no RedisFault first"},
	{"still none", waitingFault(func(o *Fault) {
		o.Missing = "there is no RedisFault first"
	}), 68 * time.Second, FaultFail, v1alpha1.ReasonNotBeside, "waited 1m0s for that to pass"},
	{"one that does not act yet, for however long", waitingFault(func(o *Fault) {
		o.NotYet = "RedisFault first does not act yet"
	}), time.Hour, FaultWait, v1alpha1.ReasonWaitingForFault, "first does not act yet"},
	{"one that is over", waitingFault(func(o *Fault) {
		o.TooLate, o.SteadyWhy = "RedisFault first is over", "varies by 12 %"
	}), 20 * time.Second, FaultFail, v1alpha1.ReasonNotBeside, "spec.beside: RedisFault first is over: varies by 12 %"},
	{"one that is over after the record", waitingFault(func(o *Fault) {
		o.Recorded, o.RecordedAt, o.TooLate = true, at(19*time.Second), "RedisFault first is over"
		o.RevertedAll, o.Collected = true, true
	}), 20 * time.Second, FaultFail, v1alpha1.ReasonNotBeside, "spec.beside: RedisFault first is over"},
	{"one that is gone after the record, which is old", waitingFault(func(o *Fault) {
		o.Recorded, o.RecordedAt, o.Missing = true, at(0), "there is no RedisFault first"
		o.Collected = true
	}), 20 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "there is no RedisFault first: reverting the fault"},
	{"one that is over after the injection", waitingFault(func(o *Fault) {
		o.Recorded, o.RecordedAt, o.TooLate = true, at(19*time.Second), "RedisFault first is over"
		o.Attempted, o.InjectedAny, o.Collected = true, true, true
	}), 20 * time.Second, FaultInject, v1alpha1.ReasonInjecting, ""},
	{"not yet time beside it", waitingFault(func(o *Fault) {
		o.ActSince, o.AfterBeside, o.Steady = at(20*time.Second), new(5*time.Second), false
	}), 24 * time.Second, FaultWait, v1alpha1.ReasonWaitingForTime, "5s after"},
	{"time beside it, steady or not", waitingFault(func(o *Fault) {
		o.ActSince, o.AfterBeside, o.Steady = at(20*time.Second), new(5*time.Second), false
	}), 25 * time.Second, FaultRecord, v1alpha1.ReasonInjecting, ""},
	{"not steady beside it", waitingFault(func(o *Fault) {
		o.ActSince, o.Steady, o.SteadyWhy = at(20*time.Second), false, "varies by 12 %"
	}), 25 * time.Second, FaultWait, v1alpha1.ReasonWaitingForSteady, "12 %"},
	{"steady", waitingFault(nil), 20 * time.Second, FaultRecord, v1alpha1.ReasonInjecting, ""},
	{"no target was found just now: try again", waitingFault(func(o *Fault) {
		o.Trouble, o.TroubleSince = &problem.Problem{Reason: v1alpha1.ReasonNoTarget}, at(20*time.Second)
	}), 25 * time.Second, FaultRecord, v1alpha1.ReasonInjecting, ""},
	{"no target is found", waitingFault(func(o *Fault) {
		o.Trouble, o.TroubleSince = &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: "none"}, at(20*time.Second)
	}), 81 * time.Second, FaultFail, v1alpha1.ReasonNoTarget, "none; waited 1m0s for that to pass"},
	{"a short timeout leaves time for objects in any order", waitingFault(func(o *Fault) {
		o.Load = LoadMissing
		o.SteadyWithin = time.Second
	}), ReferenceGrace - time.Second, FaultWait, v1alpha1.ReasonLoadTestNotFound, "cache"},
	{"a spec that cannot work", waitingFault(func(o *Fault) {
		o.Problem = &problem.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Lasting: true,
		}
	}), 0, FaultFail, v1alpha1.ReasonInvalidSpec, ""},
	{"abort before", waitingFault(func(o *Fault) { o.Abort = true }), 0, FaultFinish, v1alpha1.ReasonAborted, ""},
}
