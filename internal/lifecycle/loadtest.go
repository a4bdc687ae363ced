package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// LoadTestAction is an action on a RedisLoadTest.
type LoadTestAction string

// The actions.
const (
	LoadTestWait LoadTestAction = "Wait" // nothing to do before Until
	// store in the metadata that it has begun, which is left where the status is lost
	LoadTestNote    LoadTestAction = "Note"
	LoadTestPrepare LoadTestAction = "Prepare" // create what is missing of Secret, ConfigMap and Job
	// decide the start instant, store it, send it to all pods
	LoadTestStart LoadTestAction = "Start"
	// the start instant is stored, but a pod has not received it
	LoadTestResend LoadTestAction = "Resend"
	// a search: decide the next rate, store it, send it to all pods; or send them the end
	LoadTestStep    LoadTestAction = "Step"
	LoadTestStop    LoadTestAction = "Stop"    // end the load of all pods now, keep what was measured
	LoadTestFinish  LoadTestAction = "Finish"  // figures, verdict, store the record, release the pods
	LoadTestFail    LoadTestAction = "Fail"    // the same as far as possible, and the condition Failed
	LoadTestSuspend LoadTestAction = "Suspend" // delete the Job, discard what was measured
	LoadTestExpire  LoadTestAction = "Expire"  // delete the object: its TTL has passed
)

// Limits of waiting that no field of the spec sets.
const (
	// ReferenceGrace is how long a fault waits at least for its load test and its targets: GitOps
	// applies in any order.
	ReferenceGrace = 30 * time.Second
	// PodSilence is how long a running load pod may be unreachable before it counts as lost.
	PodSilence = 20 * time.Second
	// FaultsGrace is how long a finished load waits for the faults that hit it to be settled.
	FaultsGrace = 30 * time.Second
	// StartLead is how far ahead the start instant is, so that all pods receive it in time.
	StartLead = 3 * time.Second
	// endGrace is how much later than planned a load may end before its pods count as lost.
	endGrace = time.Minute
	// verifyGrace is how long the load pods may take beyond that to read their ledgers back: they stop
	// by themselves before.
	verifyGrace = 6 * time.Minute
)

// LoadTest is the observed state of a RedisLoadTest.
type LoadTest struct {
	Suspend, Abort bool
	Finished       bool      // Complete or Failed is True
	CompletedAt    time.Time // of a finished one
	TTL            *time.Duration
	Suspended      bool // the condition is True and nothing of the run is left
	Noted          bool // its metadata says that it has begun
	// why it must not run: it is a copy of a load test that had begun; "" = it may
	Restored string
	Problem  *problem.Problem // a reference is missing, Redis is not ready, or the spec cannot work
	LoadPods
	Course
	Search *Search // nil = the load does not search, or has not begun
	Collection
}

// LoadPods are the pods of a load, and what they are made by.
type LoadPods struct {
	PendingSince time.Time // when the test was first seen, or a suspension ended
	StartWithin  time.Duration
	Children     bool   // Secret, ConfigMap and Job are there
	JobSuspended bool   // by something else, as the operator never does that: the Job makes no pods
	PodsWanted   int    //
	PodsReady    int    // connected to Redis, waiting for the start or beyond
	PodsExplain  string // why the others are not ready, for people
	// some load pod has an address: it may become ready without a change of any object
	PodsAnswer   bool
	AgentProblem *problem.Problem
	// the reason of what a load pod waits for; "" = for nothing that its agent knows
	PodsAwait  string
	PodsLost   []string // load pods lost since the start
	PodsLive   int      // load pods that still count
	LostPolicy v1alpha1.LostPodPolicy
}

// Course is when a load starts, and how long its parts take.
type Course struct {
	StartedAt     time.Time     // the stored start instant; zero = not decided
	StartReceived bool          // every live pod has it
	StartedAny    bool          // some pod has it
	RampUp        time.Duration //
	WarmUp        time.Duration //
	Length        time.Duration // whole run; 0 = ends by number of requests
	// the last part of Length, which ends early when every fault on the load has settled
	Extension time.Duration
}

// Collection is how far the end of a load is, and what it waits for.
type Collection struct {
	Verifying     int    // load pods that read their ledgers back
	VerifyingSays string // a message of one of them, for people
	Stopped       bool   // the pods were stopped, by Abort
	// when this process began to collect; after a restart the pods must be polled first
	CollectedSince time.Time
	// the pods have reported what they read back or found out, and the status does not contain it yet
	ResultUnstored bool
	RecordEnded    bool      // every live pod has finished and everything is pulled
	RecordEndedAt  time.Time // since when
	// FaultsUnsettled are the faults on this load that are not injected yet, or not reverted and
	// judged; FaultsUnfinished are those that hit it and are not complete.
	FaultsUnsettled, FaultsUnfinished []string
}

// Search is the observed state of a load test's search.
type Search struct {
	Due     bool      // a rate, or the end, is to be sent to the pods
	Message string    // its state, for people
	Until   time.Time // when the trial under way can be judged; zero = none is
}

// NextForLoadTest decides what to do next with a RedisLoadTest. Before the start everything that
// can pass is waited for until the start deadline; after it the run ends by itself, by abort, or by
// the loss of its pods.
func NextForLoadTest(o LoadTest, now time.Time) Decision[LoadTestAction] {
	if o.Finished {
		return afterFinish(o, now)
	}
	if o.Restored != "" && o.StartedAt.IsZero() {
		return do(LoadTestFinish, v1alpha1.ReasonRestored, o.Restored)
	}
	if o.Suspend {
		if o.Suspended {
			return wait(v1alpha1.ReasonSuspended, "spec.suspend holds the test", time.Time{})
		}
		return do(LoadTestSuspend, v1alpha1.ReasonSuspended, "spec.suspend holds the test")
	}
	if o.StartedAt.IsZero() {
		return beforeStart(o, now)
	}
	return afterStart(o, now)
}

func afterFinish(o LoadTest, now time.Time) Decision[LoadTestAction] {
	if o.TTL == nil {
		return Decision[LoadTestAction]{Action: LoadTestWait}
	}
	if end := o.CompletedAt.Add(*o.TTL); now.Before(end) {
		return Decision[LoadTestAction]{Action: LoadTestWait, Until: end}
	}
	return Decision[LoadTestAction]{Action: LoadTestExpire}
}

func beforeStart(o LoadTest, now time.Time) Decision[LoadTestAction] {
	deadline := o.PendingSince.Add(o.StartWithin)
	switch {
	case o.Abort:
		return do(LoadTestFinish, v1alpha1.ReasonAborted, "spec.abort was set before the load began")
	case o.Problem != nil:
		return onProblem(o, now)
	case o.AgentProblem != nil:
		return do(LoadTestFail, o.AgentProblem.Reason, o.AgentProblem.Message)
	case !o.Children && !now.Before(deadline):
		return do(LoadTestFail, v1alpha1.ReasonStartDeadline,
			fmt.Sprintf("spec.pods.startDeadline: after %s the load pods could not be made: %s",
				o.StartWithin, o.PodsExplain))
	case !o.Noted:
		return do(LoadTestNote, v1alpha1.ReasonPreparing, "making the load pods")
	case !o.Children:
		return do(LoadTestPrepare, v1alpha1.ReasonPreparing, "making the load pods")
	// for as long as a queue takes: the deadline counts from when it lets the Job go on, which is seen
	case o.JobSuspended:
		return wait(v1alpha1.ReasonJobSuspended,
			"something holds the Job of the load pods suspended (its spec.suspend), as a queue such as "+
				"Kueue does: they are made when it lets the Job go on", time.Time{})
	case o.PodsReady < o.PodsWanted && !now.Before(deadline):
		return do(LoadTestFail, cmp.Or(o.PodsAwait, v1alpha1.ReasonStartDeadline),
			fmt.Sprintf("spec.pods.startDeadline: after %s only %d of %d load pods are ready: %s",
				o.StartWithin, o.PodsReady, o.PodsWanted, o.PodsExplain))
	case o.PodsReady < o.PodsWanted:
		return wait(cmp.Or(o.PodsAwait, v1alpha1.ReasonPreparing),
			fmt.Sprintf("%d of %d load pods are ready: %s", o.PodsReady, o.PodsWanted, o.PodsExplain),
			earlier(deadline, nextForPods(o, now)))
	}
	return do(LoadTestStart, v1alpha1.ReasonStarting,
		fmt.Sprintf("%[1]d of %[1]d load pods are ready", o.PodsWanted))
}

// onProblem waits for what can pass, and fails with anything else.
func onProblem(o LoadTest, now time.Time) Decision[LoadTestAction] {
	deadline := o.PendingSince.Add(o.StartWithin)
	switch {
	case o.Problem.Lasting:
		return do(LoadTestFail, o.Problem.Reason, o.Problem.Message)
	case !now.Before(deadline):
		return do(LoadTestFail, o.Problem.Reason,
			fmt.Sprintf("spec.pods.startDeadline: after %s: %s", o.StartWithin, o.Problem.Message))
	}
	return wait(o.Problem.Reason, o.Problem.Message,
		earlier(deadline, now.Add(lookAgain(o.PendingSince, now))))
}

// nextForPods is when to look again for load pods that are not ready. As long as none runs, an
// object changes before one is ready: what else may be said of them is looked for ever more seldom,
// so that a test costs little which waits for a quota or a node for hours.
func nextForPods(o LoadTest, now time.Time) time.Time {
	if o.PodsAnswer {
		return now.Add(time.Second)
	}
	return now.Add(min(max(time.Second, now.Sub(o.PendingSince)/2), time.Minute))
}

func afterStart(o LoadTest, now time.Time) Decision[LoadTestAction] {
	elapsed := now.Sub(o.StartedAt)
	due := later(o.StartedAt.Add(o.Length), o.CollectedSince)
	grace := endGrace
	if o.Verifying > 0 {
		grace += verifyGrace
	}
	overdue := o.Length > 0 && now.After(due.Add(grace))
	switch {
	case o.Problem != nil: // the spec was planned once; only another version of the operator cannot
		return do(LoadTestFail, o.Problem.Reason, o.Problem.Message)
	case o.AgentProblem != nil && !o.RecordEnded:
		return do(LoadTestFail, o.AgentProblem.Reason, o.AgentProblem.Message)
	case len(o.PodsLost) > 0 && (o.LostPolicy != v1alpha1.LostPodContinue || o.PodsLive == 0):
		return do(LoadTestFail, v1alpha1.ReasonPodsLost,
			fmt.Sprintf("spec.pods.lost: %d of %d load pods were lost during the run: %s", len(o.PodsLost),
				o.PodsWanted, join(o.PodsLost)))
	case o.RecordEnded:
		return afterRecord(o, now)
	case overdue:
		return do(LoadTestFail, v1alpha1.ReasonPodsLost,
			fmt.Sprintf("the load pods have not ended %s after their time", grace))
	case o.Abort && !o.Stopped:
		return do(LoadTestStop, v1alpha1.ReasonAborted, "spec.abort: the load pods are told to end")
	case !o.StartReceived:
		return starting(o, elapsed)
	}
	return running(o, elapsed, now)
}

// starting sends the start instant that is stored.
func starting(o LoadTest, elapsed time.Duration) Decision[LoadTestAction] {
	switch {
	case !o.StartedAny && o.Abort:
		return do(LoadTestFinish, v1alpha1.ReasonAborted, "spec.abort was set before the load began")
	case !o.StartedAny && elapsed > 0:
		// No pod began: the operator ended between storing the instant and sending it. A new one has no
		// disadvantage.
		return do(LoadTestStart, v1alpha1.ReasonStarting,
			"the start instant passed before any load pod had it")
	}
	return do(LoadTestResend, v1alpha1.ReasonStarting, "sending the start instant")
}

func afterRecord(o LoadTest, now time.Time) Decision[LoadTestAction] {
	if o.ResultUnstored { // a pod that was released loses it
		return wait(v1alpha1.ReasonVerifying, "what was read back is stored",
			now.Add(100*time.Millisecond))
	}
	end := o.RecordEndedAt.Add(FaultsGrace)
	if len(o.FaultsUnfinished) > 0 && now.Before(end) {
		return wait(v1alpha1.ReasonWaitingForFaults,
			"the load has ended; waiting for "+join(o.FaultsUnfinished), earlier(end, now.Add(time.Second)))
	}
	if o.Abort {
		return do(LoadTestFinish, v1alpha1.ReasonAborted, "ended by spec.abort")
	}
	return do(LoadTestFinish, v1alpha1.ReasonSucceeded, "")
}

func running(o LoadTest, elapsed time.Duration, now time.Time) Decision[LoadTestAction] {
	next := now.Add(2 * time.Second)
	switch {
	case o.Verifying > 0 && o.Verifying == o.PodsLive:
		message := fmt.Sprintf("the load has ended, %d load pods read back what was acknowledged",
			o.Verifying)
		if o.VerifyingSays != "" {
			message += ": " + o.VerifyingSays
		}
		return wait(v1alpha1.ReasonVerifying, message, next)
	case elapsed < 0:
		return wait(v1alpha1.ReasonStarting,
			fmt.Sprintf("all load pods begin at %s", o.StartedAt.Format(time.RFC3339Nano)), o.StartedAt)
	case elapsed < o.RampUp:
		return wait(v1alpha1.ReasonRampingUp, fmt.Sprintf("ramping up for %s", o.RampUp),
			earlier(next, o.StartedAt.Add(o.RampUp)))
	case elapsed < o.RampUp+o.WarmUp:
		return wait(v1alpha1.ReasonWarmingUp, fmt.Sprintf("warming up for %s", o.WarmUp),
			earlier(next, o.StartedAt.Add(o.RampUp+o.WarmUp)))
	}
	if f := o.Search; f != nil && !o.Abort {
		return searching(f, now, next)
	}
	if o.Extension > 0 && elapsed >= o.Length-o.Extension && !o.Stopped {
		return extended(o, next)
	}
	if o.Extension > 0 && !o.Stopped { // the load ends at its planned end unless a fault extends it
		next = earlier(next, o.StartedAt.Add(o.Length-o.Extension))
	}
	return wait(v1alpha1.ReasonRunning, runningPods(o.PodsLive), next)
}

func runningPods(n int) string {
	if n == 1 {
		return "1 load pod runs"
	}
	return fmt.Sprintf("%d load pods run", n)
}

// extended decides in the time after spec.load.duration.
func extended(o LoadTest, next time.Time) Decision[LoadTestAction] {
	if len(o.FaultsUnsettled) == 0 {
		return do(LoadTestStop, v1alpha1.ReasonRunning,
			"every fault on the load has settled: the load ends")
	}
	return wait(v1alpha1.ReasonWaitingForFaults,
		"spec.load.untilFaultsSettle: the load goes on for "+join(o.FaultsUnsettled), next)
}

// searchAgain is how soon a trial that is not yet in the record is checked again.
const searchAgain = 200 * time.Millisecond

func searching(f *Search, now, next time.Time) Decision[LoadTestAction] {
	switch {
	case f.Due:
		return do(LoadTestStep, v1alpha1.ReasonSearching, f.Message)
	case !f.Until.IsZero():
		next = earlier(next, later(f.Until, now.Add(searchAgain)))
	}
	return wait(v1alpha1.ReasonSearching, f.Message, next)
}

func do(a LoadTestAction, reason, message string) Decision[LoadTestAction] {
	return Decision[LoadTestAction]{
		Action:  a,
		Reason:  reason,
		Message: message,
	}
}

func wait(reason, message string, until time.Time) Decision[LoadTestAction] {
	return Decision[LoadTestAction]{
		Action:  LoadTestWait,
		Reason:  reason,
		Message: message,
		Until:   until,
	}
}
