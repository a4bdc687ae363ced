package lifecycle

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// A dry run neither needs a load nor a trigger, creates nothing, and is refused as any fault.
func TestDryRun(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Fault)
		action FaultAction
		reason string
	}{
		"without its own load": {func(o *Fault) {
			o.OwnLoad = true
			o.Load = LoadMissing
		}, FaultRehearse, v1alpha1.ReasonPreparing},
		"before the load exists": {func(o *Fault) { o.Load = LoadMissing }, FaultRehearse, v1alpha1.ReasonPreparing},
		"before a target is known": {func(o *Fault) {
			o.Load = LoadMissing
			o.KnowsTarget = false
		}, FaultWait, v1alpha1.ReasonLoadTestNotFound},
		"before the load runs": {func(o *Fault) { o.Load = LoadPending }, FaultRehearse, v1alpha1.ReasonPreparing},
		"after the load":       {func(o *Fault) { o.Load = LoadEnded }, FaultRehearse, v1alpha1.ReasonPreparing},
		"before the trigger":   {func(o *Fault) { o.Steady = false }, FaultRehearse, v1alpha1.ReasonPreparing},
		"while another fault acts": {func(o *Fault) {
			o.Blocked = "other"
			o.Taken = true
		}, FaultRehearse, v1alpha1.ReasonPreparing},
		"held":    {func(o *Fault) { o.Suspend = true }, FaultWait, v1alpha1.ReasonSuspended},
		"aborted": {func(o *Fault) { o.Abort = true }, FaultFinish, v1alpha1.ReasonAborted},
		"stopped": {func(o *Fault) { o.Stopped = "by an annotation" }, FaultFinish, v1alpha1.ReasonStopped},
		"late": {func(o *Fault) {
			o.Deadline = at(
				time.Second)
		}, FaultFail, v1alpha1.ReasonDeadlineExceeded},
		"refused": {func(o *Fault) {
			o.Problem = &problem.Problem{
				Reason:  "BlastRadius",
				Lasting: true,
			}
		}, FaultFail, v1alpha1.ReasonBlastRadius},
		"without a target": {func(o *Fault) {
			o.Trouble = &problem.Problem{Reason: "NoTarget"}
			o.TroubleSince = at(-time.Hour)
		}, FaultFail, v1alpha1.ReasonNoTarget},
		"over": {func(o *Fault) { o.Finished, o.Recorded = true, true }, FaultWait, ""},
		"recorded, which cannot be": {func(o *Fault) {
			o.Recorded = true
			o.Finalizer = true
		}, FaultRevert, v1alpha1.ReasonReverting},
		"deleted": {func(o *Fault) { o.Deleting = true }, FaultWait, ""},
	} {
		o := waitingFault(func(o *Fault) {
			o.DryRun, o.KnowsTarget, o.Finalizer = true, true, false
			tc.change(o)
		})
		if d := NextForFault(o, at(20*time.Second)); d.Action != tc.action || d.Reason != tc.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", name, d.Action, d.Reason, tc.action, tc.reason)
		}
	}
}

// A fault that something else injects waits for its instant, then observes.
func TestExternal(t *testing.T) {
	waits := func(o *Fault) { o.AwaitedSince, o.AwaitedFor = at(15*time.Second), time.Minute }
	marked := func(o *Fault) {
		waits(o)
		o.InjectedAt, o.Recorded, o.RevertedAll = at(18*time.Second), true, true
	}
	for name, tc := range map[string]struct {
		state, change func(*Fault)
		now           time.Duration
		action        FaultAction
		reason        string
	}{
		"not steady": {
			change: func(o *Fault) { o.Steady = false },
			action: FaultWait,
			reason: v1alpha1.ReasonWaitingForSteady,
		},
		"steady": {action: FaultAwait, reason: v1alpha1.ReasonWaitingForMark},
		"marked too early": {
			change: func(o *Fault) { o.MarkTrouble = "bad" },
			action: FaultWait,
			reason: v1alpha1.ReasonInvalidMark,
		},
		"waits": {state: waits, action: FaultLook, reason: v1alpha1.ReasonWaitingForMark},
		"with a bad annotation": {
			state:  waits,
			change: func(o *Fault) { o.MarkTrouble = "bad" },
			action: FaultLook,
			reason: v1alpha1.ReasonInvalidMark,
		},
		"is marked": {
			state:  waits,
			change: func(o *Fault) { o.Marked = true },
			action: FaultMark,
			reason: v1alpha1.ReasonObserving,
		},
		"marked at the last": {
			state:  waits,
			change: func(o *Fault) { o.Marked = true },
			now:    time.Hour,
			action: FaultMark,
			reason: v1alpha1.ReasonObserving,
		},
		"too long": {state: waits, now: 75 * time.Second, action: FaultFail, reason: v1alpha1.ReasonNotMarked},
		"the load ends": {
			state:  waits,
			change: func(o *Fault) { o.Load = LoadEnded },
			action: FaultFail,
			reason: v1alpha1.ReasonLoadTestEnded,
		},
		"past its deadline": {state: waits, change: func(o *Fault) {
			o.Deadline = at(16 *
				time.Second)
		}, action: FaultFail, reason: v1alpha1.ReasonDeadlineExceeded},
		"aborted while it waits": {
			state:  waits,
			change: func(o *Fault) { o.Abort = true },
			action: FaultFinish,
			reason: v1alpha1.ReasonAborted,
		},
		"held too late": {
			state:  waits,
			change: func(o *Fault) { o.Suspend = true },
			action: FaultLook,
			reason: v1alpha1.ReasonWaitingForMark,
		},
		"observes": {state: marked, action: FaultObserve, reason: v1alpha1.ReasonObserving},
		"past it, observes": {state: marked, change: func(o *Fault) {
			o.Deadline = at(19 *
				time.Second)
		}, action: FaultObserve, reason: v1alpha1.ReasonObserving},
		"settled": {
			state:  marked,
			change: func(o *Fault) { o.Settled = true },
			action: FaultFinish,
			reason: v1alpha1.ReasonSucceeded,
		},
		"waits for losses": {state: marked, change: func(o *Fault) {
			o.Settled = true
			o.LossesPending = true
		}, action: FaultSettle, reason: v1alpha1.ReasonWaitingForLosses},
		"stopped": {
			state:  marked,
			change: func(o *Fault) { o.Stopped = "by an annotation" },
			action: FaultFinish,
			reason: v1alpha1.ReasonStopped,
		},
		"deleted": {
			state:  marked,
			change: func(o *Fault) { o.Deleting = true },
			action: FaultRelease,
			reason: "",
		},
	} {
		o := waitingFault(func(o *Fault) {
			o.External = true
			for _, change := range []func(*Fault){tc.state, tc.change} {
				if change != nil {
					change(o)
				}
			}
		})
		if tc.now == 0 {
			tc.now = 20 * time.Second
		}
		if d := NextForFault(o, at(tc.now)); d.Action != tc.action || d.Reason != tc.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", name, d.Action, d.Reason, tc.action, tc.reason)
		}
	}
}
