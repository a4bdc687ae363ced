package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// waitingFault is a fault whose load runs and is steady.
func waitingFault(change func(*Fault)) Fault {
	o := Fault{
		Life: Life{Finalizer: true, Noted: true, FirstSeen: epoch},
		MeasuringLoad: MeasuringLoad{
			Load:      LoadRunning,
			LoadName:  "cache",
			LoadStart: epoch,
			WarmUntil: at(8 * time.Second),
		},
		Trigger: Trigger{
			SteadyFor:    10 * time.Second,
			SteadyWithin: time.Minute,
			Steady:       true,
		},
		Recovery: Recovery{SettleWithin: 50 * time.Second},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func recordedFault(change func(*Fault)) Fault {
	return waitingFault(func(o *Fault) {
		o.Recorded, o.RecordedAt = true, at(20*time.Second)
		if change != nil {
			change(o)
		}
	})
}

func injectedFault(change func(*Fault)) Fault {
	return recordedFault(func(o *Fault) {
		o.InjectedAny, o.InjectedAll, o.InjectedAt, o.RevertedAll = true, true, at(20*time.Second), true
		if change != nil {
			change(o)
		}
	})
}

// activeFault is active for 30 s from its 22nd second.
func activeFault(change func(*Fault)) Fault {
	return injectedFault(func(o *Fault) {
		o.ActiveAt, o.Lasts, o.RevertedAll = at(22*time.Second), 30*time.Second, false
		if change != nil {
			change(o)
		}
	})
}

// revertingFault is reverted from its 60th second on; it was called then. deletedAfter is the time of its deletion; 0 =
// not deleted.
func revertingFault(attempts int, deletedAfter time.Duration) Fault {
	return activeFault(func(o *Fault) {
		o.Reverting = true
		o.RevertSince = at(60 * time.Second)
		o.RevertTried = true
		o.Pending = []Pending{{Pod: "redis-0", Attempts: attempts}}
		if deletedAfter > 0 {
			o.Deleting, o.RevertSince = true, at(max(deletedAfter, 60*time.Second))
		}
	})
}

// failing is a fault with what its reverts show.
func failing(o Fault, err, progress string) Fault {
	o.RevertErr, o.Progress = err, progress
	return o
}

func untried(o Fault) Fault {
	o.RevertTried = false
	return o
}

// The effect of a fault that was not confirmed is checked once more at its end, before the revert, but not if the fault
// is ended early.
func TestFinalEffectCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Fault)
		want   bool
	}{
		"at its end":       {nil, true},
		"confirmed before": {func(o *Fault) { o.Confirmed = true }, false},
		"begun":            {func(o *Fault) { o.Reverting = true }, false},
		"not complete":     {func(o *Fault) { o.InjectedAll = false }, false},
		"nothing stays":    {func(o *Fault) { o.Lasts = 0 }, false},
		"aborted":          {func(o *Fault) { o.Abort = true }, false},
		"deleted":          {func(o *Fault) { o.Deleting = true }, false},
		"stopped":          {func(o *Fault) { o.Stopped = "by an annotation" }, false},
	} {
		if got := activeFault(tc.change).LastLook(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The effect of an active fault is checked often until it is confirmed, then rarely, and always at its end.
func TestPollIntervalOfActiveFault(t *testing.T) {
	for _, tc := range []struct {
		confirmed, kept bool
		now, want       time.Duration
	}{
		{false, false, 30 * time.Second, 30*time.Second + FaultPoll},
		{true, false, 30 * time.Second, 30*time.Second + HoldPoll},
		{true, false, 51 * time.Second, 52 * time.Second},
		// a fault that would end without the operator is renewed often, whether confirmed or not
		{true, true, 30 * time.Second, 30*time.Second + KeepPoll},
	} {
		d := NextForFault(activeFault(func(o *Fault) { o.Confirmed, o.Kept = tc.confirmed, tc.kept }), at(tc.now))
		if d.Action != FaultHold || !d.Until.Equal(at(tc.want)) {
			t.Errorf("confirmed %v, at %s: %s until %s, want %s", tc.confirmed, tc.now, d.Action, d.Until.Sub(epoch), tc.want)
		}
	}
}

// A fault that waits is not looked at while nothing changes, but when its load is to be there, and at its deadline.
func TestWaitingFaultsAreSeldomLookedAt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Fault)
		want   time.Duration
	}{
		"the load is pending":      {nil, time.Hour + pendingPoll},
		"the deadline comes first": {func(o *Fault) { o.Deadline = at(time.Hour + time.Minute) }, time.Hour + time.Minute},
		"the load warms up": {func(o *Fault) {
			o.LoadNext = at(time.Hour + time.Second)
			o.Deadline = at(24 * time.Hour)
		}, time.Hour + time.Second},
		"suspended until the deadline": {func(o *Fault) { o.Suspend, o.Deadline = true, at(24*time.Hour) }, 24 * time.Hour},
		"suspended, and the load is there": {func(o *Fault) {
			o.Suspend = true
			o.Load = LoadRunning
			o.Deadline = at(24 * time.Hour)
		}, 24 * time.Hour},
	} {
		d := NextForFault(waitingFault(func(o *Fault) {
			o.Load = LoadPending
			if tc.change != nil {
				tc.change(o)
			}
		}), at(time.Hour))
		if d.Action != FaultWait || !d.Until.Equal(at(tc.want)) {
			t.Errorf("%s: %s until %s, want %s", name, d.Action, d.Until.Sub(epoch), tc.want)
		}
	}
}

func TestNextForFault(t *testing.T) {
	ttl, after := time.Minute, 30*time.Second
	for _, tc := range []struct {
		name    string
		seen    Fault
		now     time.Duration
		action  FaultAction
		reason  string
		message string
	}{
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
			o.After = &after
			o.Steady = false
		}), 29 * time.Second, FaultWait, v1alpha1.ReasonWaitingForTime, "30s"},
		{"time, steady or not", waitingFault(func(o *Fault) {
			o.After = &after
			o.Steady = false
		}), 30 * time.Second, FaultRecord, v1alpha1.ReasonInjecting, ""},
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
			Fault{Life: Life{Finished: true, CompletedAt: epoch}, Asked: Asked{TTL: &ttl}},
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NextForFault(tc.seen, at(tc.now))
			if d.Action != tc.action || d.Reason != tc.reason {
				t.Errorf("decided %s (%s), want %s (%s): %s", d.Action, d.Reason, tc.action, tc.reason, d.Message)
			}
			if !strings.Contains(d.Message, tc.message) {
				t.Errorf("got message %q, want one that contains %q", d.Message, tc.message)
			}
		})
	}
}
