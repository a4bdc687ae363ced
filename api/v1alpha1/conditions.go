package v1alpha1

// Condition types of all kinds. The reason of Complete summarizes the object and is shown in the
// column STATUS.
// Complete, Failed and Suspended are named as those of Job; Reconciling and Stalled are read by
// kstatus (Flux, kubectl plugins).
const (
	ConditionComplete = "Complete" // True: it ran to completion. Terminal
	ConditionFailed   = "Failed"   // True: it could not run to completion. Terminal
	// True: it is suspended by spec.suspend, or, with ReasonJobSuspended, by whatever holds its Job
	ConditionSuspended   = "Suspended"
	ConditionReconciling = "Reconciling" // True: it is in progress
	ConditionStalled     = "Stalled"     // True: it failed and cannot proceed without a change
)

// Condition types of RedisLoadTest.
const (
	ConditionAccepted      = "Accepted"      // the spec is valid and its references exist
	ConditionLoadReady     = "LoadReady"     // all load pods are connected to Redis
	ConditionObjectivesMet = "ObjectivesMet" // the verdict as a condition
)

// Condition types of RedisExperiment, beside Accepted and ObjectivesMet.
const (
	ConditionRegressed = "Regressed" // a figure is worse than in the run of spec.compareTo
)

// Condition types of RedisExperimentSchedule, beside Suspended, Reconciling, Stalled and Regressed:
// a figure is worse than in earlier runs. The reason of Ready summarizes the object and is shown in
// the column STATUS.
const (
	// True: runs are created when they are due, unless spec.suspend is set; False: the message says
	// what keeps them from that
	ConditionReady    = "Ready"
	ConditionNotified = "Notified" // with spec.notify: the last change was notified of
)

// Reasons of Notified. It has ReasonInvalidSpec and ReasonSecretNotFound as well, also before the
// first run.
const (
	// True: the server has accepted the last notification, and nothing has changed since
	ReasonNotified        = "Notified"
	ReasonNothingToNotify = "NothingToNotify" // Unknown: no run has ended yet
	// False: it was not accepted; the message says why and when it is tried again. Also of an event
	ReasonNotificationFailed = "NotificationFailed"
)

// Reasons of Regressed.
const (
	// True: the message names figure, cell, since which run, and by how much
	ReasonRegressed    = "Regressed"
	ReasonUnconfirmed  = "Unconfirmed"  // True: so, and the run that shows it could not be repeated
	ReasonNotRegressed = "NotRegressed" // False
	// Unknown: there is nothing to compare with; the message says why
	ReasonNotCompared = "NotCompared"
	// Unknown: a run of the schedule shows a regression, and is repeated
	ReasonConfirming = "Confirming"
)

// Reasons of an experiment's events.
const (
	EventExperimentRegressed = "ExperimentRegressed" // a figure is worse than before
	EventRunSkipped          = "RunSkipped"          // scheduled times have no run
)

// Condition types of RedisFault.
const (
	ConditionTargetsSelected = "TargetsSelected"
	ConditionInjected        = "Injected"
	ConditionReverted        = "Reverted"
	ConditionRecovered       = "Recovered"
	// of a setting: it was there for its load, as far as that was observed
	ConditionHeld = "Held"
)

// Reasons of Held.
const (
	ReasonHeld = "Held" // True: the effect was confirmed when it was last looked at
	// False: the effect was confirmed, and is not there any more, as after a restart of the server
	ReasonSettingLost = "SettingLost"
	ReasonSettingLate = "SettingLate" // False: the load was measured before the setting was complete
	ReasonCutShort    = "CutShort"    // False: it was reverted before its load test had ended
	// Unknown: the effect could not be confirmed, or not when the load had ended
	ReasonNotConfirmed = "NotConfirmed"
)

// Reasons of Complete: the current state of the object.
const (
	ReasonPending   = "Pending"   // observed, not processed yet
	ReasonPreparing = "Preparing" // load pods are created, connect and prefill
	// something, such as a queue, holds the Job of the load pods suspended
	ReasonJobSuspended = "JobSuspended"
	ReasonStarting     = "Starting"  // the start instant is set and is in the future
	ReasonRampingUp    = "RampingUp" //
	ReasonWarmingUp    = "WarmingUp" //
	ReasonRunning      = "Running"   // the measured time
	ReasonSearching    = "Searching" // the measured time of a search for a rate
	// the load has ended; its ledger of acknowledged writes is read back
	ReasonVerifying = "Verifying"
	// the load has ended; its load pods remove the keys that it has created
	ReasonCleaningUp = "CleaningUp"
	// the load has ended or exceeded its duration, and a fault on it is not settled yet
	ReasonWaitingForFaults = "WaitingForFaults"
	ReasonWaitingForLoad   = "WaitingForLoad"   // the load test is not running yet
	ReasonWaitingForSteady = "WaitingForSteady" // the throughput is not steady yet
	ReasonWaitingForTime   = "WaitingForTime"   // trigger.after has not passed yet
	// another fault acts on the same server, workload or node
	ReasonWaitingForFault = "WaitingForFault"
	// as many faults act, or nodes are tainted by them, as the cluster's policy permits
	ReasonWaitingForPolicy = "WaitingForPolicy"
	ReasonPolicyInvalid    = "PolicyInvalid"  // the cluster's policy cannot be read: no fault begins
	ReasonWaitingForMark   = "WaitingForMark" // of type External: nothing has broken Redis yet
	// the same, and the annotation redquake.dev/mark cannot be used
	ReasonInvalidMark = "InvalidMark"
	// the revert record is stored, the fault is being injected
	ReasonInjecting = "Injecting"
	ReasonActive    = "Active"    // injected, for its duration
	ReasonObserving = "Observing" // injected, recovery is being observed
	ReasonReverting = "Reverting" // the fault is being reverted
	// settled; lost writes are determined when the load has ended and its ledger was read back
	ReasonWaitingForLosses = "WaitingForLosses"
	ReasonSuspended        = "Suspended"        //
	ReasonNotSuspended     = "NotSuspended"     // of the condition Suspended
	ReasonChecking         = "Checking"         // of an experiment: its cells are checked by dry runs
	ReasonApplyingSettings = "ApplyingSettings" // of an experiment: the settings of a run are applied
	ReasonScheduled        = "Scheduled"        // of a schedule: it waits for the next scheduled time
	// spec.dryRun: targets, guards and checks are fine, and nothing was injected
	ReasonDryRun    = "DryRun"
	ReasonSucceeded = "Succeeded" // ran to completion
	ReasonAborted   = "Aborted"   // ended by spec.abort
	// ended by the annotation redquake.dev/stop of a namespace
	ReasonStopped = "Stopped"
	// a copy of an object that had begun to run, as from a backup: nothing was done
	ReasonRestored = "Restored"
	// ended by spec.stopIf. Also of Failed: not injected because of it
	ReasonStopConditionMet = "StopConditionMet"
)

// Reasons of an experiment's end.
const (
	ReasonRefused = "Refused" // a cell cannot run: the message names it, and why
	// of a schedule: a step has failed, and is tried again; the message says why
	ReasonRetrying  = "Retrying"
	ReasonRunFailed = "RunFailed" // spec.stopOnFailure: a run has failed
	// an object of the name of a child belongs to somebody else
	ReasonObjectNotOwned = "ObjectNotOwned"
)

// Reasons of Failed that the operator detects. Load pods report further reasons (plan.Reason).
const (
	ReasonSecretNotFound  = "SecretNotFound"
	ReasonServiceNotFound = "ServiceNotFound"
	ReasonNoEndpoints     = "NoEndpoints"
	ReasonNoTarget        = "NoTarget" // no pod matches, or none has the role
	// the load test leads to another Redis than when the fault first saw it
	ReasonTargetChanged = "TargetChanged"
	// a pod of Redis that was created a moment ago is not ready
	ReasonTargetNotReady = "TargetNotReady"
	// passed admission but cannot work; the message names the field
	ReasonInvalidSpec      = "InvalidSpec"
	ReasonStartDeadline    = "StartDeadlineExceeded"
	ReasonPodsLost         = "LoadPodLost"
	ReasonLoadTestNotFound = "LoadTestNotFound"
	ReasonLoadTestFailed   = "LoadTestFailed"
	ReasonLoadTestEnded    = "LoadTestEnded" // the load ended before the fault was injected
	ReasonNotSteady        = "NotSteady"
	ReasonNotBeside        = "NotBeside" // a fault in spec.beside did not act in time, or not any more
	// of the conditions Injected, Reverted and Recovered of a fault that is over without an injection
	ReasonNotInjected = "NotInjected"
	// of Reverted: the type of the fault changes nothing that stays, or the operator injects nothing
	ReasonNothingToRevert = "NothingToRevert"
	// of type External: nothing broke Redis within action.external.waitFor
	ReasonNotMarked       = "NotMarked"
	ReasonInjectionFailed = "InjectionFailed"
	// the fault could not be reverted; the message contains the command to do so manually
	ReasonRevertFailed = "RevertFailed"
	// of the condition Reverted: the revert has failed for a while, and goes on
	ReasonRevertDelayed = "RevertDelayed"
	// of an event: the revert leaves what somebody else has changed meanwhile, or may have left
	// something
	ReasonPartlyReverted = "PartlyReverted"
	// of an event and a doubt: the fault stayed for longer than asked
	ReasonOverstayed = "Overstayed"
	ReasonProtected  = "Protected" // the namespace does not allow faults
	// the cluster's policy, or the operator's flag --faults, forbids the fault or an allowance
	ReasonForbiddenByPolicy = "ForbiddenByPolicy"
	// a guard rejected the fault; spec.allow lifts guards
	ReasonBlastRadius = "BlastRadius"
	// the server or the cluster does not support it
	ReasonNotSupported = "NotSupported"
	// every server that a fault may select rejects the credentials; load pods report the same
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// every server that a fault may select runs in protected mode; load pods report the same
	ReasonProtectedMode = "ProtectedMode"
	// the operator lacks a right in Kubernetes that the fault or its revert needs; the message names
	// it and the role
	ReasonNotPermitted = "NotPermitted"
	// a server or the spec names an address that is no pod of the namespace; no command is sent there
	ReasonForeignAddress     = "ForeignAddress"
	ReasonEngineUnavailable  = "EngineUnavailable" // spec.engine is not installed in the cluster
	ReasonDeadlineExceeded   = "DeadlineExceeded"  // spec.deadline
	ReasonNotRecovered       = "NotRecovered"
	ReasonObjectivesNotMet   = "ObjectivesNotMet"
	ReasonInconclusive       = "Inconclusive"
	ReasonResultsNotStorable = "ResultsNotStorable"
)
