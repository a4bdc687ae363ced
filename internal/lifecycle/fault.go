package lifecycle

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// FaultAction is what can be done with a RedisFault.
type FaultAction string

// The actions.
const (
	FaultWait         FaultAction = "Wait"         // nothing to do before Until
	FaultAddFinalizer FaultAction = "AddFinalizer" // before anything that would have to be undone
	FaultMakeLoad     FaultAction = "MakeLoad"     // make the probe load of its own
	FaultRecord       FaultAction = "Record"       // choose the targets, check them, store their records
	FaultInject       FaultAction = "Inject"       // break every target whose record says that it is not broken yet
	FaultHold         FaultAction = "Hold"         // it is active and to stay; look again at Until
	FaultObserve      FaultAction = "Observe"      // follow recovery; look again at Until
	FaultRevert       FaultAction = "Revert"       // undo every target
	FaultSettle       FaultAction = "Settle"       // everything is undone and recovery was judged: final figures but for the losses
	FaultFinish       FaultAction = "Finish"       // verdict, condition Complete
	FaultFail         FaultAction = "Fail"         // condition Failed
	FaultRelease      FaultAction = "Release"      // take the finalizer away: everything is undone
	FaultExpire       FaultAction = "Expire"       // delete the object: its TTL has passed
)

// LoadState is where the load stands that measures a fault.
type LoadState string

// The states.
const (
	LoadMissing LoadState = "Missing" // there is no such RedisLoadTest
	LoadForeign LoadState = "Foreign" // the name of its own probe load is another object's
	LoadPending LoadState = "Pending" // it does not run yet, or ramps or warms up
	LoadRunning LoadState = "Running" // past warm-up
	LoadEnded   LoadState = "Ended"   // no further interval will come
	LoadFailed  LoadState = "Failed"  // it failed
)

// How often a fault that waits or observes looks at the record.
const (
	FaultPoll = 500 * time.Millisecond
	// InjectPatience is how long an injection that errs is tried again before the fault is undone and fails.
	InjectPatience = 30 * time.Second
	// StepsPatience is how long an injection of several steps may take before the fault is undone and fails.
	StepsPatience = 15 * time.Minute
	// RevertPatience is how long undoing is tried before it is given up and people are told what to do by hand: a deleted fault is gone within a minute.
	RevertPatience = 40 * time.Second
	// RevertAttempts is how often in a row undoing must have erred before it is given up.
	RevertAttempts = 10
	// HoldPoll is how often a fault that is active, and confirmed, is looked at.
	HoldPoll = 2 * time.Second
	// KeepPoll is how often a fault is renewed that would end by itself before its time.
	KeepPoll = 250 * time.Millisecond
)

// Fault is what was observed of a RedisFault.
type Fault struct {
	Deleting, Finalizer bool
	Suspend, Abort      bool
	Stopped             string // why all faults here are to end, from a namespace's annotation; "" = they are not
	Finished            bool
	CompletedAt         time.Time
	Deadline            time.Time // when it is over at the latest
	TTL                 *time.Duration

	OwnLoad     bool      // it makes its own probe load
	CreatedAt   time.Time //
	Load        LoadState
	LoadName    string
	LoadMessage string    // of a failed one, or where a pending one stands
	LoadStart   time.Time // the load's start instant
	WarmUntil   time.Time // end of its ramp-up and warm-up

	After        *time.Duration // trigger.after
	SteadyFor    time.Duration  // trigger.steadyFor
	SteadyWithin time.Duration  // trigger.timeout
	Steady       bool
	SteadyWhy    string

	Recorded     bool      // targets are stored
	RecordedAt   time.Time //
	InjectedAny  bool
	InjectedAll  bool
	InjectedAt   time.Time // t0
	InjectionErr string
	Progress     string        // of an injection of several steps
	ActiveAt     time.Time     // when it was complete on all targets
	Takes        time.Duration // how long its steps may take; 0 = StepsPatience
	Lasts        time.Duration // how long it stays from then on; 0 = nothing stays
	Confirmed    bool          // its effect was seen
	Kept         bool          // it must be renewed meanwhile
	Undoing      bool          // undoing has begun: from here on nothing is broken any more, whatever it began for
	RevertedAll  bool          // undone everywhere, or given up
	RevertFailed string        // what could not be undone, and how to do it by hand
	Problem      *Problem      // a reference is missing or the spec cannot work
	Trouble      *Problem      // why the targets could not be chosen the last time that they should have been; nil if they could
	TroubleSince time.Time     // of Trouble
	Settled      bool          // the impact cannot change any more, and the effect was seen
	SettleWithin time.Duration // recovery deadline and the time that recovery must hold
	SettledAt    time.Time     // when that was stored; zero = it is not yet
	// LossesPending says that the load test will say which acknowledged writes were lost, and has not yet.
	LossesPending bool
}

// NextForFault decides what to do next with a RedisFault. Nothing is broken before the finalizer and the records are stored,
// and it does not end before everything is undone.
func NextForFault(o Fault, now time.Time) Decision[FaultAction] {
	if o.Deleting {
		return leaving(o, now)
	}
	if o.Finished {
		return faultAfterFinish(o, now)
	}
	if !o.Finalizer {
		return act(FaultAddFinalizer, v1alpha1.ReasonPending, "")
	}
	if o.Recorded {
		return afterRecorded(o, now)
	}
	return beforeRecorded(o, now)
}

func leaving(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case !o.Finalizer:
		return act(FaultWait, "", "")
	case o.Recorded && !o.Finished && !o.RevertedAll:
		return look(FaultRevert, v1alpha1.ReasonReverting, "the fault is deleted: undoing it", now.Add(revertPoll))
	}
	return act(FaultRelease, "", "")
}

// revertPoll is how soon undoing is tried again.
const revertPoll = time.Second

func faultAfterFinish(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case o.Finalizer:
		return act(FaultRelease, "", "")
	case o.TTL == nil:
		return act(FaultWait, "", "")
	}
	if end := o.CompletedAt.Add(*o.TTL); now.Before(end) {
		return look(FaultWait, "", "", end)
	}
	return act(FaultExpire, "", "")
}

func beforeRecorded(o Fault, now time.Time) Decision[FaultAction] {
	again := now.Add(FaultPoll)
	switch {
	case o.Abort:
		return act(FaultFinish, v1alpha1.ReasonAborted, "spec.abort was set before anything was broken")
	case o.Stopped != "":
		return act(FaultFinish, v1alpha1.ReasonStopped, o.Stopped)
	case overdue(o, now):
		return act(FaultFail, v1alpha1.ReasonDeadlineExceeded, "spec.deadline: the fault was not injected in time")
	case o.Problem != nil && o.Problem.Lasting:
		return act(FaultFail, o.Problem.Reason, o.Problem.Message)
	case o.Suspend:
		return look(FaultWait, v1alpha1.ReasonSuspended, "spec.suspend holds the fault", again)
	case o.Load == LoadForeign && now.Before(o.CreatedAt.Add(ReferenceGrace)):
		return look(FaultWait, v1alpha1.ReasonPreparing, fmt.Sprintf("RedisLoadTest %s belongs to another object: waiting until it is gone", o.LoadName), again)
	case o.Load == LoadForeign:
		return act(FaultFail, v1alpha1.ReasonLoadTestNotFound, fmt.Sprintf("RedisLoadTest %s, the name of the fault's own probe load, belongs to another object: delete it, or name the fault otherwise", o.LoadName))
	case o.Load == LoadMissing && o.OwnLoad:
		return act(FaultMakeLoad, v1alpha1.ReasonPreparing, "making a probe load")
	case o.Load == LoadMissing:
		if end := o.CreatedAt.Add(ReferenceGrace); now.Before(end) {
			return look(FaultWait, v1alpha1.ReasonLoadTestNotFound, "spec.loadTestRef.name: there is no RedisLoadTest "+o.LoadName, earlier(end, now.Add(time.Second)))
		}
		return act(FaultFail, v1alpha1.ReasonLoadTestNotFound, "spec.loadTestRef.name: there is no RedisLoadTest "+o.LoadName)
	case o.Load == LoadFailed:
		return act(FaultFail, v1alpha1.ReasonLoadTestFailed, fmt.Sprintf("RedisLoadTest %s failed: %s", o.LoadName, o.LoadMessage))
	case o.Load == LoadEnded:
		return act(FaultFail, v1alpha1.ReasonLoadTestEnded, fmt.Sprintf("RedisLoadTest %s ended before the fault was injected%s", o.LoadName, because(o.SteadyWhy)))
	case o.Load == LoadPending:
		return look(FaultWait, v1alpha1.ReasonWaitingForLoad, fmt.Sprintf("RedisLoadTest %s is not under full load yet%s", o.LoadName, because(o.LoadMessage)), again)
	}
	return onTrigger(o, now)
}

func onTrigger(o Fault, now time.Time) Decision[FaultAction] {
	if o.After != nil {
		if at := o.LoadStart.Add(*o.After); now.Before(at) {
			return look(FaultWait, v1alpha1.ReasonWaitingForTime, fmt.Sprintf("spec.trigger.after: %s after the load's start", *o.After), at)
		}
	} else if !o.Steady {
		if limit := o.WarmUntil.Add(o.SteadyWithin); !now.Before(limit) {
			return act(FaultFail, v1alpha1.ReasonNotSteady, fmt.Sprintf("spec.trigger.timeout: not steady for %s within %s: %s", o.SteadyFor, o.SteadyWithin, o.SteadyWhy))
		}
		return look(FaultWait, v1alpha1.ReasonWaitingForSteady, o.SteadyWhy, now.Add(FaultPoll))
	}
	if o.Trouble != nil && now.Sub(o.TroubleSince) > ReferenceGrace {
		return act(FaultFail, o.Trouble.Reason, o.Trouble.Message)
	}
	if o.Problem != nil {
		return look(FaultWait, o.Problem.Reason, o.Problem.Message, now.Add(time.Second))
	}
	return look(FaultRecord, v1alpha1.ReasonInjecting, "choosing the targets and recording the way back", now.Add(time.Second))
}

func overdue(o Fault, now time.Time) bool { return !o.Deadline.IsZero() && !now.Before(o.Deadline) }

func afterRecorded(o Fault, now time.Time) Decision[FaultAction] {
	if !o.SettledAt.IsZero() && o.InjectedAll && o.RevertedAll && o.RevertFailed == "" {
		return afterSettled(o, now)
	}
	if why, reason, failed := endedEarly(o, now); reason != "" {
		switch {
		case !o.RevertedAll:
			return look(FaultRevert, v1alpha1.ReasonReverting, why+": undoing the fault", now.Add(revertPoll))
		case o.RevertFailed != "":
			return act(FaultFail, v1alpha1.ReasonRevertFailed, o.RevertFailed)
		case failed:
			return act(FaultFail, reason, why)
		}
		return act(FaultFinish, reason, why)
	}
	end := o.ActiveAt.Add(o.Lasts)
	switch {
	case !o.InjectedAll && !o.Undoing:
		return look(FaultInject, v1alpha1.ReasonInjecting, cmp.Or(o.InjectionErr, o.Progress, "breaking the recorded targets"), now.Add(FaultPoll))
	case !o.RevertedAll && !o.Undoing && o.Lasts > 0 && now.Before(end) && o.Load != LoadEnded && o.Load != LoadFailed && o.Load != LoadMissing:
		next := now.Add(FaultPoll)
		switch {
		case o.Kept:
			next = now.Add(KeepPoll)
		case o.Confirmed:
			next = now.Add(HoldPoll)
		}
		return look(FaultHold, v1alpha1.ReasonActive, "", earlier(end, next))
	case !o.RevertedAll:
		return look(FaultRevert, v1alpha1.ReasonReverting, cmp.Or(o.Progress, "undoing the fault"), now.Add(revertPoll))
	case o.RevertFailed != "":
		return act(FaultFail, v1alpha1.ReasonRevertFailed, o.RevertFailed)
	case !o.InjectedAll: // what it was undone for shows no more, as an error that did not come again or a stop that was taken back
		return act(FaultFail, v1alpha1.ReasonInjectionFailed, cmp.Or(o.InjectionErr, "undone before it was complete"))
	case !o.Settled && o.Load != LoadMissing && now.Sub(o.InjectedAt) < o.SettleWithin+10*time.Second:
		return look(FaultObserve, v1alpha1.ReasonObserving, "", now.Add(FaultPoll))
	case o.LossesPending:
		return look(FaultSettle, v1alpha1.ReasonWaitingForLosses, waitingForLosses(o), now.Add(lossesPoll))
	}
	return act(FaultFinish, v1alpha1.ReasonSucceeded, "")
}

// afterSettled waits for the losses alone: an abort or a stop ends that.
func afterSettled(o Fault, now time.Time) Decision[FaultAction] {
	if o.LossesPending && !o.Abort && o.Stopped == "" {
		return look(FaultWait, v1alpha1.ReasonWaitingForLosses, waitingForLosses(o), now.Add(lossesPoll))
	}
	return act(FaultFinish, v1alpha1.ReasonSucceeded, "")
}

// lossesPoll is how often a fault looks whether its losses are known; a change of the load test wakes it before.
const lossesPoll = 10 * time.Second

func waitingForLosses(o Fault) string {
	return fmt.Sprintf("RedisLoadTest %s reads back what was acknowledged when the load has ended: until then lost writes are not known", o.LoadName)
}

// RunsOut says whether nobody wants the fault to end before its time.
func (o Fault) RunsOut() bool { return !o.Deleting && !o.Abort && o.Stopped == "" }

// endedEarly says why a recorded fault ends before its time; reason is "" where it does not.
func endedEarly(o Fault, now time.Time) (why, reason string, failed bool) {
	switch {
	case o.Abort:
		return "ended by spec.abort", v1alpha1.ReasonAborted, false
	case o.Stopped != "":
		return o.Stopped, v1alpha1.ReasonStopped, false
	case overdue(o, now) && !(o.InjectedAll && o.RevertedAll): // recovery may still be watched
		return "spec.deadline has passed", v1alpha1.ReasonDeadlineExceeded, true
	case !o.InjectedAny && (o.Load == LoadMissing || o.Load == LoadFailed || o.Load == LoadEnded): // nobody would see what it does
		return fmt.Sprintf("RedisLoadTest %s ended before the fault was injected", o.LoadName), v1alpha1.ReasonLoadTestEnded, true
	case !o.InjectedAll && o.InjectionErr != "" && now.Sub(o.RecordedAt) > InjectPatience:
		return o.InjectionErr, v1alpha1.ReasonInjectionFailed, true
	case !o.InjectedAll && o.Progress != "" && now.Sub(o.RecordedAt) > max(StepsPatience, o.Takes):
		return fmt.Sprintf("not complete after %s: %s", max(StepsPatience, o.Takes), o.Progress), v1alpha1.ReasonInjectionFailed, true
	}
	return "", "", false
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func act(a FaultAction, reason, message string) Decision[FaultAction] {
	return Decision[FaultAction]{Action: a, Reason: reason, Message: message}
}

func look(a FaultAction, reason, message string, at time.Time) Decision[FaultAction] {
	return Decision[FaultAction]{Action: a, Reason: reason, Message: message, Until: at}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func join(names []string) string { return strings.Join(names, ", ") }
