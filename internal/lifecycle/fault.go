package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// FaultAction is an action on a RedisFault.
type FaultAction string

// The actions.
const (
	FaultWait FaultAction = "Wait" // nothing to do before Until
	// before anything that must be reverted; with the note that it has begun, unless it is suspended
	FaultAddFinalizer FaultAction = "AddFinalizer"
	FaultMakeLoad     FaultAction = "MakeLoad" // create its own probe load
	// of a dry run: choose the targets and check them, break nothing, and end
	FaultRehearse FaultAction = "Rehearse"
	FaultAwait    FaultAction = "Await" // begin to wait until something else breaks Redis
	FaultLook     FaultAction = "Look"  // see whether that has happened
	FaultMark     FaultAction = "Mark"  // it has: store the instant
	// choose the targets, check them, store their records
	FaultRecord FaultAction = "Record"
	// the record is too old: revert what it prepared, and choose the targets anew
	FaultRenew  FaultAction = "Renew"
	FaultInject FaultAction = "Inject" // break every target that is not recorded as broken
	// the injection was called a moment ago: nothing to do or to report before Until
	FaultPause FaultAction = "Pause"
	FaultHold  FaultAction = "Hold" // it is active; check again at Until
	// a setting whose load has ended: look at it once more, and at what was injected after it; nothing
	// begins beside it any more
	FaultClose   FaultAction = "Close"
	FaultObserve FaultAction = "Observe" // observe recovery; check again at Until
	FaultRevert  FaultAction = "Revert"  // revert every target
	// stop reverting the targets for which Abandons is true
	FaultAbandon FaultAction = "Abandon"
	// everything is reverted and recovery was judged: final figures but for the losses
	FaultSettle  FaultAction = "Settle"
	FaultFinish  FaultAction = "Finish"  // verdict, condition Complete
	FaultFail    FaultAction = "Fail"    // condition Failed
	FaultRelease FaultAction = "Release" // remove the finalizer: everything is reverted
	FaultExpire  FaultAction = "Expire"  // delete the object: its TTL has passed
)

// LoadState is the state of the load that measures a fault.
type LoadState string

// The states.
const (
	LoadMissing LoadState = "Missing" // there is no such RedisLoadTest
	LoadForeign LoadState = "Foreign" // the name of its own probe load is taken by another object
	LoadPending LoadState = "Pending" // it does not run yet, or ramps or warms up
	LoadRunning LoadState = "Running" // past warm-up
	LoadEnded   LoadState = "Ended"   // no further interval will come
	LoadFailed  LoadState = "Failed"  // it failed
)

// Intervals and limits of a fault's steps.
const (
	FaultPoll = 500 * time.Millisecond
	// StaleRecord is the age from which a record is not used for an injection any more: roles may have
	// changed since.
	StaleRecord = 10 * time.Second
	// InjectPatience is how long an injection that returns errors is retried before the fault is
	// reverted and fails.
	InjectPatience = 30 * time.Second
	// StepsPatience is how long an injection of several steps may take before the fault is reverted
	// and fails.
	StepsPatience = 15 * time.Minute
	// RevertPatience is how long a revert may fail before a warning says what to do manually. That of
	// a deleted fault is abandoned then, and the fault is removed within a minute.
	RevertPatience = 40 * time.Second
	// DeletedLimit is how long the revert of a deleted fault is tried, whatever steps it makes.
	DeletedLimit = 30 * time.Minute
	// RevertLimit is how long the revert of a fault that nobody deletes is tried before it is
	// abandoned.
	RevertLimit = 24 * time.Hour
	// RevertAttempts is how often in a row a revert must have failed before it is abandoned.
	RevertAttempts = 10
	// BetweenCalls is the least time between two calls of an injection that is not complete: each ends
	// in a write of the status, which triggers a reconcile at once.
	BetweenCalls = 250 * time.Millisecond
	// HoldPoll is how often a fault that is active and confirmed is checked.
	HoldPoll = 2 * time.Second
	// KeepPoll is how often a fault is renewed that would end by itself before its time.
	KeepPoll = 250 * time.Millisecond
)

// NextForFault decides what to do next with a RedisFault. Nothing is broken before the finalizer
// and the records are stored, and it does not end before everything is reverted.
func NextForFault(o Fault, now time.Time) Decision[FaultAction] {
	if o.Deleting {
		return leaving(o, now)
	}
	if o.Finished {
		return faultAfterFinish(o, now)
	}
	if o.DryRun && !o.Recorded {
		return rehearsing(o, now)
	}
	if o.Restored != "" && !o.Recorded {
		return act(FaultFinish, v1alpha1.ReasonRestored, o.Restored)
	}
	if !o.Finalizer || o.toNote() {
		return act(FaultAddFinalizer, v1alpha1.ReasonPending, "")
	}
	if o.External {
		return external(o, now)
	}
	if o.Recorded {
		return afterRecorded(o, now)
	}
	return beforeRecorded(o, now)
}

// toNote reports whether nothing may be done before it is noted that the fault has begun. A
// suspended one has not.
func (o Fault) toNote() bool {
	return !o.Noted && !o.Recorded && !o.Suspend
}

func leaving(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case !o.Finalizer:
		return act(FaultWait, "", "")
	case o.Recorded && !o.Finished && !o.RevertedAll:
		return revert(o, "the fault is deleted: reverting it", now)
	}
	return act(FaultRelease, "", "")
}

// revertPoll is how soon a revert is tried again.
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
	if d, decided := unbegun(o, now); decided {
		return d
	}
	if o.Setting {
		return settingUnbegun(o, now)
	}
	return onLoad(o, now)
}

// unbegun decides on a fault that ends, or is held, before it has begun.
func unbegun(o Fault, now time.Time) (d Decision[FaultAction], decided bool) {
	switch {
	case o.Abort:
		return act(FaultFinish, v1alpha1.ReasonAborted,
			"spec.abort was set before anything was broken"), true
	case o.Stopped != "":
		return act(FaultFinish, v1alpha1.ReasonStopped, o.Stopped), true
	case overdue(o, now):
		return act(FaultFail, v1alpha1.ReasonDeadlineExceeded,
			"spec.deadline: the fault was not injected in time"), true
	case o.Problem != nil && o.Problem.Lasting:
		return act(FaultFail, o.Problem.Reason, o.Problem.Message), true
	case o.Suspend:
		return look(FaultWait, v1alpha1.ReasonSuspended, "spec.suspend holds the fault", o.Deadline), true
	case o.Withheld != nil && (o.DryRun || o.OwnLoad || !loadGone(o)):
		return look(FaultWait, o.Withheld.Reason, o.Withheld.Message, now.Add(withheldPoll)), true
	}
	return d, false
}

func onLoad(o Fault, now time.Time) Decision[FaultAction] {
	//exhaustive:enforce
	switch o.Load {
	case LoadRunning:
	case LoadForeign:
		return onForeignLoad(o, now)
	case LoadMissing:
		return onMissingLoad(o, now)
	case LoadFailed:
		return act(FaultFail, v1alpha1.ReasonLoadTestFailed,
			fmt.Sprintf("RedisLoadTest %s failed: %s", o.LoadName, o.LoadMessage))
	case LoadEnded:
		return act(FaultFail, v1alpha1.ReasonLoadTestEnded,
			fmt.Sprintf("RedisLoadTest %s ended before the fault was injected%s", o.LoadName,
				because(whyNot(o))))
	case LoadPending:
		return look(FaultWait, v1alpha1.ReasonWaitingForLoad,
			fmt.Sprintf("RedisLoadTest %s is not under full load yet%s", o.LoadName, because(o.LoadMessage)),
			nextLook(o, now))
	}
	return onTrigger(o, now)
}

// whyNot is what has kept a fault from being injected the last time that it was looked at; "" if
// that is not known.
func whyNot(o Fault) string {
	if o.Trouble != nil {
		return o.Trouble.Message
	}
	return o.SteadyWhy
}

func onForeignLoad(o Fault, now time.Time) Decision[FaultAction] {
	if now.Before(o.FirstSeen.Add(o.patience())) {
		return look(FaultWait, v1alpha1.ReasonPreparing,
			fmt.Sprintf("RedisLoadTest %s belongs to another object: waiting until it is deleted",
				o.LoadName), now.Add(FaultPoll))
	}
	return act(FaultFail, v1alpha1.ReasonLoadTestNotFound,
		fmt.Sprintf(
			"RedisLoadTest %s, the name of the fault's own probe load, belongs to another object: delete "+
				"it, or give the fault another name", o.LoadName))
}

func onMissingLoad(o Fault, now time.Time) Decision[FaultAction] {
	if o.OwnLoad {
		return act(FaultMakeLoad, v1alpha1.ReasonPreparing, "making a probe load")
	}
	if end := o.FirstSeen.Add(o.patience()); now.Before(end) {
		return look(FaultWait, v1alpha1.ReasonLoadTestNotFound,
			"spec.loadTestRef.name: there is no RedisLoadTest "+o.LoadName,
			earlier(end, now.Add(lookAgain(o.FirstSeen, now))))
	}
	return act(FaultFail, v1alpha1.ReasonLoadTestNotFound,
		waitedInVain("spec.loadTestRef.name: there is no RedisLoadTest "+o.LoadName, o.patience()))
}

// patience is how long a fault waits for what can pass: spec.trigger.timeout, at least
// ReferenceGrace. Somebody waits for the answer of a dry run.
func (o Fault) patience() time.Duration {
	if o.DryRun {
		return ReferenceGrace
	}
	return max(ReferenceGrace, o.SteadyWithin)
}

func afterRecorded(o Fault, now time.Time) Decision[FaultAction] {
	if !o.SettledAt.IsZero() && o.whole() && o.RevertedAll && o.RevertFailed == "" {
		return afterSettled(o, now)
	}
	if d, decided := closing(o, now); decided {
		return d
	}
	if why, reason, failed := endedEarly(o, now); reason != "" {
		return ending(o, why, reason, failed, now)
	}
	switch {
	case !o.whole() && !o.Reverting:
		return injecting(o, now)
	case !o.RevertedAll && !o.Reverting && active(o, now):
		return holding(o, now)
	case !o.RevertedAll:
		return revert(o, cmp.Or(o.Breach, endOfSetting(o), "reverting the fault"), now)
	case o.RevertFailed != "":
		return act(FaultFail, v1alpha1.ReasonRevertFailed, o.RevertFailed)
	// the reason of the revert does not apply any more, such as an error that did not occur again or a
	// stop that was withdrawn
	case !o.whole():
		return act(FaultFail, o.notInjected(),
			cmp.Or(o.InjectionErr, "reverted before it was complete"))
	}
	return settling(o, now)
}

// whole reports whether nothing is to be injected any more: a fault that a stop condition ended is
// measured as far as it was injected.
func (o Fault) whole() bool {
	return o.InjectedAll || o.Breach != ""
}

// succeeded ends a fault that was measured.
func succeeded(o Fault) Decision[FaultAction] {
	if o.Breach != "" {
		return act(FaultFinish, v1alpha1.ReasonStopConditionMet, o.Breach)
	}
	return act(FaultFinish, v1alpha1.ReasonSucceeded, "")
}

// ending reverts a fault that ends before its time, then ends it with the reason for that.
func ending(o Fault, why, reason string, failed bool, now time.Time) Decision[FaultAction] {
	switch {
	case !o.RevertedAll:
		return revert(o, why+": reverting the fault", now)
	case o.RevertFailed != "":
		return act(FaultFail, v1alpha1.ReasonRevertFailed, o.RevertFailed)
	case failed:
		return act(FaultFail, reason, why)
	}
	return act(FaultFinish, reason, why)
}

func injecting(o Fault, now time.Time) Decision[FaultAction] {
	if stale(o, now) {
		return paced(o, look(FaultRenew, v1alpha1.ReasonInjecting,
			"the record of the targets is too old: choosing them anew", now.Add(FaultPoll)), now)
	}
	return paced(o, look(FaultInject, v1alpha1.ReasonInjecting,
		cmp.Or(o.InjectionErr, o.Progress, "breaking the recorded targets"), now.Add(FaultPoll)), now)
}

// active reports whether an injected fault is to stay: its time has not passed, no stop condition
// is met, and a load measures it.
func active(o Fault, now time.Time) bool {
	return o.Lasts > 0 && o.Breach == "" && now.Before(o.endOfEffect()) && !loadGone(o)
}

func holding(o Fault, now time.Time) Decision[FaultAction] {
	next := now.Add(FaultPoll)
	switch {
	case o.Kept:
		next = now.Add(KeepPoll)
	case o.Confirmed:
		next = now.Add(HoldPoll)
	}
	return look(FaultHold, v1alpha1.ReasonActive, "", earlier(o.endOfEffect(), next))
}

func (o Fault) endOfEffect() time.Time {
	return o.ActiveAt.Add(o.Lasts)
}

// settling follows recovery once everything is reverted.
func settling(o Fault, now time.Time) Decision[FaultAction] {
	switch {
	case o.Setting: // nothing is measured against it
	case !o.Settled && o.Load != LoadMissing && now.Sub(o.InjectedAt) < o.SettleWithin+10*time.Second:
		return look(FaultObserve, v1alpha1.ReasonObserving, "", now.Add(FaultPoll))
	case o.LossesPending:
		return look(FaultSettle, v1alpha1.ReasonWaitingForLosses, waitingForLosses(o),
			now.Add(lossesPoll))
	}
	return succeeded(o)
}

// afterSettled waits for the losses alone: an abort or a stop ends that.
func afterSettled(o Fault, now time.Time) Decision[FaultAction] {
	if o.LossesPending && !o.Abort && o.Stopped == "" {
		return look(FaultWait, v1alpha1.ReasonWaitingForLosses, waitingForLosses(o), now.Add(lossesPoll))
	}
	return succeeded(o)
}

// lossesPoll is how often a fault checks for its losses; a change of the load test triggers that
// earlier.
const lossesPoll = 10 * time.Second

func waitingForLosses(o Fault) string {
	return fmt.Sprintf(
		"RedisLoadTest %s reads back what was acknowledged when the load has ended: until then lost writes are not known",
		o.LoadName)
}

// stale reports whether a record is too old and nothing was injected by it, so that the targets can
// be chosen anew.
func stale(o Fault, now time.Time) bool {
	return o.Collected && !o.Attempted && !o.InjectedAny && !o.Begun &&
		now.Sub(o.RecordedAt) > StaleRecord
}

// nextLook is when to look at a pending load again, and at the fault's deadline.
func nextLook(o Fault, now time.Time) time.Time {
	next := now.Add(pendingPoll)
	for _, at := range []time.Time{o.LoadNext, o.Deadline} {
		if !at.IsZero() {
			next = earlier(next, at)
		}
	}
	return next
}

// incomplete returns why an injection is not tried any more; "" if it is, or is complete.
func incomplete(o Fault, now time.Time) string {
	took := now.Sub(o.RecordedAt)
	switch {
	case o.whole():
		return ""
	case o.InjectionErr != "" && took > InjectionPatience(true, o.Takes):
		return o.InjectionErr
	case o.Progress != "" && took > InjectionPatience(false, o.Takes):
		return fmt.Sprintf("not complete after %s: %s", InjectionPatience(false, o.Takes), o.Progress)
	}
	return ""
}

// InjectionPatience is how long after the record an injection is tried: one that returns errors, or
// one of several steps, which may take as long as that.
func InjectionPatience(failed bool, takes time.Duration) time.Duration {
	if failed {
		return InjectPatience
	}
	return max(StepsPatience, takes)
}

// notInjected is the reason of a fault that could not be injected on all its targets.
func (o Fault) notInjected() string {
	if o.NotSupported {
		return v1alpha1.ReasonNotSupported
	}
	return v1alpha1.ReasonInjectionFailed
}

func overdue(o Fault, now time.Time) bool {
	return !o.Deadline.IsZero() && !now.Before(o.Deadline)
}

func loadGone(o Fault) bool {
	if o.Setting {
		return settingGone(o)
	}
	return o.Load == LoadMissing || o.Load == LoadFailed || o.Load == LoadEnded
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func act(a FaultAction, reason, message string) Decision[FaultAction] {
	return Decision[FaultAction]{
		Action:  a,
		Reason:  reason,
		Message: message,
	}
}

func look(a FaultAction, reason, message string, at time.Time) Decision[FaultAction] {
	return Decision[FaultAction]{
		Action:  a,
		Reason:  reason,
		Message: message,
		Until:   at,
	}
}
