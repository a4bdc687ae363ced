package v1alpha1

// Condition types that both kinds carry. Complete's reason is the column STATUS; it is the object's summary.
// Complete, Failed and Suspended are Job's words; Reconciling and Stalled are what kstatus (Flux, kubectl plugins) reads.
const (
	ConditionComplete    = "Complete"    // True: it ran to its end. Terminal
	ConditionFailed      = "Failed"      // True: it could not run to its end. Terminal
	ConditionSuspended   = "Suspended"   // True: spec.suspend holds it
	ConditionReconciling = "Reconciling" // True: work is under way
	ConditionStalled     = "Stalled"     // True: it failed, waiting will not help
)

// Condition types of RedisLoadTest.
const (
	ConditionAccepted      = "Accepted"      // the spec can work: its references exist
	ConditionLoadReady     = "LoadReady"     // all load pods are connected to Redis
	ConditionObjectivesMet = "ObjectivesMet" // the verdict as a condition
)

// Condition types of RedisFault.
const (
	ConditionTargetsSelected = "TargetsSelected"
	ConditionInjected        = "Injected"
	ConditionReverted        = "Reverted"
	ConditionRecovered       = "Recovered"
)

// Reasons of Complete: where an object stands.
const (
	ReasonPending          = "Pending"          // seen, nothing done yet
	ReasonPreparing        = "Preparing"        // load pods are being made, connect, pre-fill
	ReasonStarting         = "Starting"         // the start instant is set and lies ahead
	ReasonRampingUp        = "RampingUp"        //
	ReasonWarmingUp        = "WarmingUp"        //
	ReasonRunning          = "Running"          // the measured time
	ReasonSearching        = "Searching"        // the measured time of a search: rates are tried
	ReasonVerifying        = "Verifying"        // the load has ended; its ledger of acknowledged writes is read back
	ReasonWaitingForFaults = "WaitingForFaults" // the load has ended, or goes on after its duration; a fault on it is not settled yet
	ReasonWaitingForLoad   = "WaitingForLoad"   // the load test does not run yet
	ReasonWaitingForSteady = "WaitingForSteady" // the throughput is not steady yet
	ReasonWaitingForTime   = "WaitingForTime"   // trigger.after lies ahead
	ReasonInjecting        = "Injecting"        // the record is written, the breaking call is made
	ReasonActive           = "Active"           // injected, and to stay for its duration
	ReasonObserving        = "Observing"        // injected; recovery is watched
	ReasonReverting        = "Reverting"        // what was done is undone
	ReasonWaitingForLosses = "WaitingForLosses" // settled; which acknowledged writes were lost shows when the load has ended and was read back
	ReasonSuspended        = "Suspended"        //
	ReasonSucceeded        = "Succeeded"        // ran to its end
	ReasonAborted          = "Aborted"          // ended by spec.abort
	ReasonStopped          = "Stopped"          // ended by the annotation redquake.dev/stop of a namespace
)

// Reasons of Failed that the operator finds by itself; reasons that load pods report (engine.Reason) stand beside them.
const (
	ReasonSecretNotFound     = "SecretNotFound"
	ReasonServiceNotFound    = "ServiceNotFound"
	ReasonNoEndpoints        = "NoEndpoints"
	ReasonNoTarget           = "NoTarget"    // no pod matches, or none has the role
	ReasonInvalidSpec        = "InvalidSpec" // passed admission but cannot work; the message names the field
	ReasonStartDeadline      = "StartDeadlineExceeded"
	ReasonPodsLost           = "LoadPodLost"
	ReasonLoadTestNotFound   = "LoadTestNotFound"
	ReasonLoadTestFailed     = "LoadTestFailed"
	ReasonLoadTestEnded      = "LoadTestEnded" // the load ended before the fault was injected
	ReasonNotSteady          = "NotSteady"
	ReasonInjectionFailed    = "InjectionFailed"
	ReasonRevertFailed       = "RevertFailed"      // it could not be undone; the message says what to do by hand
	ReasonProtected          = "Protected"         // the namespace forbids faults
	ReasonBlastRadius        = "BlastRadius"       // it would break more than it should; spec.allow lifts the guard
	ReasonNotSupported       = "NotSupported"      // the server or the cluster cannot do it
	ReasonEngineUnavailable  = "EngineUnavailable" // spec.engine is not installed in the cluster
	ReasonDeadlineExceeded   = "DeadlineExceeded"  // spec.deadline
	ReasonNotRecovered       = "NotRecovered"
	ReasonObjectivesNotMet   = "ObjectivesNotMet"
	ReasonInconclusive       = "Inconclusive"
	ReasonResultsNotStorable = "ResultsNotStorable"
)
