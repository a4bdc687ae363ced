package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// A setting comes before its load, and waits for no trigger.
func TestSettingBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(*Fault)
		action          FaultAction
		reason, message string
	}{
		"before the load":          {nil, FaultRecord, v1alpha1.ReasonInjecting, ""},
		"before the load is ready": {func(o *Fault) { o.Load = LoadPending }, FaultRecord, v1alpha1.ReasonInjecting, ""},
		"while the load runs":      {func(o *Fault) { o.Load = LoadRunning }, FaultRecord, v1alpha1.ReasonInjecting, ""},
		"a Redis that nobody names": {
			func(o *Fault) { o.KnowsTarget = false },
			FaultWait,
			v1alpha1.ReasonWaitingForLoad,
			"set spec.target",
		},
		"after the load": {func(o *Fault) { o.Load = LoadEnded }, FaultFail, v1alpha1.ReasonLoadTestEnded, ""},
		"after a failed load": {func(o *Fault) {
			o.Load = LoadFailed
			o.LoadMessage = "no pods"
		}, FaultFail, v1alpha1.ReasonLoadTestFailed, "no pods"},
		"while another fault acts": {
			func(o *Fault) { o.Blocked = "waiting for RedisFault other" },
			FaultWait,
			v1alpha1.ReasonWaitingForFault,
			"other",
		},
		"while as many act as may": {
			func(o *Fault) { o.OverLimit = "1 of 1" },
			FaultWait,
			v1alpha1.ReasonWaitingForPolicy,
			"",
		},
		"without a target": {func(o *Fault) {
			o.Trouble = &problem.Problem{Reason: "NoTarget"}
			o.TroubleSince = at(-time.Hour)
		}, FaultFail, v1alpha1.ReasonNoTarget, ""},
		"while no fault may begin": {func(o *Fault) {
			o.Withheld = &problem.Problem{
				Reason: v1alpha1.ReasonPolicyInvalid,
			}
		}, FaultWait, v1alpha1.ReasonPolicyInvalid, ""},
		"suspended": {func(o *Fault) { o.Suspend = true }, FaultWait, v1alpha1.ReasonSuspended, ""},
		"aborted":   {func(o *Fault) { o.Abort = true }, FaultFinish, v1alpha1.ReasonAborted, ""},
		"past its deadline": {func(o *Fault) {
			o.Deadline = at(
				time.Second)
		}, FaultFail, v1alpha1.ReasonDeadlineExceeded, ""},
		"rehearsed before the load": {func(o *Fault) { o.DryRun = true }, FaultRehearse, v1alpha1.ReasonPreparing, ""},
		"rehearsed without a target": {func(o *Fault) {
			o.DryRun = true
			o.KnowsTarget = false
		}, FaultWait, v1alpha1.ReasonLoadTestNotFound, ""},
	} {
		o := Fault{
			Life:          Life{Finalizer: true, Noted: true, FirstSeen: epoch},
			Asked:         Asked{Setting: true, KnowsTarget: true},
			MeasuringLoad: MeasuringLoad{Load: LoadMissing, LoadName: "cache"},
		}
		if tc.change != nil {
			tc.change(&o)
		}
		d := NextForFault(o, at(20*time.Second))
		if d.Action != tc.action || d.Reason != tc.reason || !strings.Contains(d.Message, tc.message) {
			t.Errorf("%s: %s (%s) %q, want %s (%s) %q", name, d.Action, d.Reason, d.Message, tc.action, tc.reason, tc.message)
		}
	}
}

// A setting stays until its load is over. Then it is looked at, waits for what came after it, and is reverted; what
// ends a fault otherwise ends it at once.
func TestSettingEnds(t *testing.T) {
	gone := func(o *Fault) { o.Load, o.LoadStart = LoadMissing, at(25*time.Second) }
	closes := func(o *Fault) { o.Load, o.ClosingSince = LoadEnded, at(40*time.Second) }
	for name, tc := range map[string]struct {
		change          func(*Fault)
		now             time.Duration
		action          FaultAction
		reason, message string
	}{
		"before its load": {func(*Fault) {}, 25 * time.Second, FaultHold, v1alpha1.ReasonActive, ""},
		"during its load": {func(o *Fault) {
			o.Load = LoadRunning
			o.LoadStart = at(25 * time.Second)
		}, 25 * time.Second, FaultHold, v1alpha1.ReasonActive, ""},
		"its load has ended": {
			func(o *Fault) { o.Load = LoadEnded },
			41 * time.Second,
			FaultClose,
			v1alpha1.ReasonReverting,
			"RedisLoadTest cache has ended",
		},
		"its load has failed": {
			func(o *Fault) { o.Load = LoadFailed },
			41 * time.Second,
			FaultClose,
			v1alpha1.ReasonReverting,
			"RedisLoadTest cache failed",
		},
		"its load is deleted": {
			gone, 41 * time.Second, FaultClose, v1alpha1.ReasonReverting,
			"RedisLoadTest cache was deleted",
		},
		"aborted": {
			func(o *Fault) { o.Abort = true },
			41 * time.Second,
			FaultClose,
			v1alpha1.ReasonReverting,
			"spec.abort",
		},
		"that is stored": {
			closes, 40 * time.Second, FaultRevert, v1alpha1.ReasonReverting,
			"RedisLoadTest cache has ended",
		},
		"Redis does not answer": {func(o *Fault) {
			closes(
				o)
			o.Unseen = true
		}, 49 * time.Second, FaultClose, v1alpha1.ReasonReverting, "not known yet"},
		"nor later": {func(o *Fault) {
			closes(
				o)
			o.Unseen = true
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, ""},
		"after it came another": {func(o *Fault) {
			closes(
				o)
			o.Later = "kill"
		}, 50 * time.Second, FaultClose, v1alpha1.ReasonReverting, "RedisFault kill, which was injected later"},
		"which does not go": {func(o *Fault) {
			closes(
				o)
			o.Later = "kill"
		}, 40*time.Second + StepsPatience, FaultRevert, v1alpha1.ReasonReverting, ""},
		"aborted, after it came another": {func(o *Fault) {
			o.Abort = true
			o.ClosingSince = at(40 * time.Second)
			o.Later = "kill"
		}, 50 * time.Second, FaultClose, v1alpha1.ReasonReverting, "kill"},
		"stopped, after it came another": {func(o *Fault) {
			closes(o)
			o.Later = "kill"
			o.Stopped = "by an annotation"
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "annotation"},
		"deleted, after it came another": {func(o *Fault) {
			closes(o)
			o.Later = "kill"
			o.Deleting = true
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "deleted"},
		"overdue, after it came another": {func(o *Fault) {
			closes(o)
			o.Later = "kill"
			o.Deadline = at(45 * time.Second)
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "spec.deadline"},
		"too long, after it came another": {func(o *Fault) {
			closes(o)
			o.Later = "kill"
			o.Lasts = 20 * time.Second
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, ""},
		"for its duration": {func(o *Fault) {
			o.Lasts = 20 *
				time.Second
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, "spec.duration has passed"},
		"a stop condition is met": {
			func(o *Fault) { o.Breach = "too slow" },
			50 * time.Second,
			FaultRevert,
			v1alpha1.ReasonReverting,
			"too slow",
		},
		"begun before the load had ended": {func(o *Fault) {
			o.Load = LoadEnded
			o.InjectedAny = false
			o.InjectedAll = false
		}, 50 * time.Second, FaultRevert, v1alpha1.ReasonReverting, ""},
		"reverted": {func(o *Fault) {
			closes(o)
			o.Reverting = true
			o.RevertedAll = true
		}, 50 * time.Second, FaultFinish, v1alpha1.ReasonSucceeded, ""},
		"reverted, of a load with ledger": {func(o *Fault) {
			closes(o)
			o.Reverting = true
			o.RevertedAll = true
			o.LossesPending = true
		}, 50 * time.Second, FaultFinish, v1alpha1.ReasonSucceeded, ""},
		"reverted after an abort": {func(o *Fault) {
			o.Abort = true
			o.Reverting = true
			o.RevertedAll = true
		}, 50 * time.Second, FaultFinish, v1alpha1.ReasonAborted, ""},
		"reverted after a stop condition": {func(o *Fault) {
			o.Breach = "too slow"
			o.Reverting = true
			o.RevertedAll = true
		}, 50 * time.Second, FaultFinish, v1alpha1.ReasonStopConditionMet, ""},
		"it could not be reverted": {func(o *Fault) {
			closes(o)
			o.Reverting = true
			o.RevertedAll = true
			o.RevertFailed = "by hand"
		}, 50 * time.Second, FaultFail, v1alpha1.ReasonRevertFailed, ""},
		"a load that never started exists": {
			func(o *Fault) { o.Load = LoadPending },
			50 * time.Second,
			FaultHold,
			v1alpha1.ReasonActive,
			"",
		},
	} {
		o := activeFault(func(o *Fault) {
			o.Setting = true
			o.KnowsTarget = true
			o.Load = LoadMissing
			o.LoadStart = time.Time{}
			o.Lasts = 24 * time.Hour
			o.Confirmed = true
			tc.change(o)
		})
		d := NextForFault(o, at(tc.now))
		if d.Action != tc.action || d.Reason != tc.reason || !strings.Contains(d.Message, tc.message) {
			t.Errorf("%s: %s (%s) %q, want %s (%s) %q", name, d.Action, d.Reason, d.Message, tc.action, tc.reason, tc.message)
		}
	}
}

// The controller that reverts without asking anything leaves an aborted setting to the one that knows the other faults
// on its load.
func TestAbortedSettingIsNotEndedAtOnce(t *testing.T) {
	o := activeFault(func(o *Fault) { o.Setting, o.Abort = true, true })
	if o.Ending(at(25 * time.Second)) {
		t.Error("it is ended at once")
	}
	for name, change := range map[string]func(*Fault){
		"another fault":   func(o *Fault) { o.Setting = false },
		"incomplete":      func(o *Fault) { o.InjectedAll = false },
		"stopped as well": func(o *Fault) { o.Stopped = "by an annotation" },
		"deleted as well": func(o *Fault) { o.Deleting = true },
	} {
		o := o
		change(&o)
		if !o.Ending(at(25 * time.Second)) {
			t.Errorf("%s: it is not ended at once", name)
		}
	}
}
