package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"
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

// faultDecision is what is done with a fault as it stands at a time.
type faultDecision struct {
	name    string
	seen    Fault
	now     time.Duration
	action  FaultAction
	reason  string
	message string
}

func TestNextForFault(t *testing.T) {
	for _, tc := range slices.Concat(waitingDecisions, recordedDecisions, activeDecisions, endedDecisions) {
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
