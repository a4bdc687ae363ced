package lifecycle

import (
	"time"

	"github.com/redquake/redquake/internal/problem"
)

// Fault is what was observed of a RedisFault.
type Fault struct {
	Life
	Asked
	MeasuringLoad
	Trigger
	Obstacles
	Mark
	Injection
	Effect
	Revert
	Recovery
}

// Life is where the object of a fault stands.
type Life struct {
	Deleting, Finalizer bool
	Finished            bool
	Noted               bool // its metadata says that it has begun, also where its status is lost
	// why it must not run: it is a copy of a fault that had begun; "" = it may
	Restored    string
	CompletedAt time.Time
	FirstSeen   time.Time // when an operator first looked at it, by that one's clock
	// why all faults here are to end, from a namespace's annotation; "" = they are not
	Stopped string
	Breach  string // the stop condition that ended it, in a sentence; "" = none
}

// Asked is what is asked of a fault.
type Asked struct {
	Suspend, Abort bool
	Deadline       time.Time // when it is over at the latest
	TTL            *time.Duration
	DryRun         bool // nothing is to be injected
	Setting        bool // a load runs with it: nothing is measured against it
	External       bool // nothing is to be injected: something else breaks Redis
	KnowsTarget    bool // its Redis is known
	OwnLoad        bool // it makes its own probe load
}

// MeasuringLoad is the load that measures a fault, or that runs with a setting.
type MeasuringLoad struct {
	Load        LoadState
	LoadName    string
	LoadMessage string // of a failed or pending one
	// of a setting in force: for how long this process has seen no load; 0 = it is there
	LoadAbsent time.Duration
	// the load's start instant; of a setting, that of the load that it has seen, also if that is gone
	LoadStart time.Time
	// when to look at a pending load again; zero = its object changes before it runs
	LoadNext  time.Time
	WarmUntil time.Time // end of its ramp-up and warm-up
	Collected bool      // its record is available
}

// Trigger is when a fault is to begin.
type Trigger struct {
	After     *time.Duration // trigger.after
	SteadyFor time.Duration  // trigger.steadyFor
	// trigger.timeout: also how long it waits for its load test and for targets
	SteadyWithin time.Duration
	Steady       bool
	SteadyWhy    string
	Partners
}

// Partners are the faults that a fault is to act beside.
type Partners struct {
	ActSince    time.Time      // when the last of them began to act; zero = not all do, or there are none
	AfterBeside *time.Duration // trigger.afterBeside: counts from then on
	NotYet      string         // one of them that does not act yet; "" = none
	Missing     string         // one of them that does not exist; "" = none
	TooLate     string         // one of them beside which nothing can act any more; "" = none
}

// Obstacles are what keeps a fault from beginning.
type Obstacles struct {
	Taken   bool   // another fault is about to record its targets on the same load
	Blocked string // the other fault that it waits for, and what both act on; "" = none
	// why a limit of the cluster's policy keeps it from acting; "" = none does
	OverLimit string
	Problem   *problem.Problem // a reference is missing or the spec cannot work
	Withheld  *problem.Problem // why no fault may begin at all
	// why the targets could not be chosen the last time that they should have been; nil if they could
	Trouble      *problem.Problem
	TroubleSince time.Time // of Trouble
}

// Mark is the instant at which something else breaks Redis, for a fault of type External.
type Mark struct {
	AwaitedSince time.Time     // when the wait for it began; zero = it has not
	AwaitedFor   time.Duration // how long it may take
	Marked       bool          // it is known
	MarkTrouble  string        // why the annotation cannot be used; "" = it can, or there is none
}

// Injection is the record of a fault, and how far it is injected.
type Injection struct {
	Recorded   bool      // targets are stored
	RecordedAt time.Time //
	Attempted  bool      // an injection by that record was tried, by whatever process
	// no attempt is stored, but a target is broken, or may be; determined for a stale record only
	Begun bool
	// when this process last called an injection that was not complete; zero = there is none
	LastCalled   time.Time
	InjectedAny  bool
	InjectedAll  bool
	InjectedAt   time.Time // t0
	InjectionErr string
	NotSupported bool          // InjectionErr says so
	Progress     string        // of an injection of several steps
	Takes        time.Duration // how long its steps may take; 0 = StepsPatience
}

// Effect is what an injected fault does, and until when.
type Effect struct {
	ActiveAt  time.Time     // when it was complete on all targets
	Lasts     time.Duration // how long it stays from then on; 0 = nothing stays
	Confirmed bool          // it was observed
	Kept      bool          // it must be renewed while it is active
	// of a setting: when it was stored that its load has ended; zero = it is not
	ClosingSince time.Time
	// of a setting that closes: Redis does not say whether it is still there
	Unseen bool
	// of a setting that closes: a fault that was injected later on the same load, and is not
	// reverted; "" = none
	Later string
}

// Revert is how far a fault is reverted.
type Revert struct {
	// it has begun: from then on nothing is injected any more, for whatever reason it began
	Reverting    bool
	RevertSince  time.Time // of Reverting, or of the deletion if that came later
	RevertTried  bool      // by this process
	RevertErr    string    // why the last attempt to revert a target has failed; "" = none has
	Pending      []Pending // the targets that are neither reverted nor abandoned
	RevertedAll  bool      // reverted everywhere, or abandoned
	RevertFailed string    // what could not be reverted, and how to do it manually
	// how long one step may take that does not fail; 0 = RevertPatience
	Step time.Duration
}

// Recovery is whether the consequences of a fault are known.
type Recovery struct {
	Settled      bool          // the impact cannot change any more, and the effect was observed
	SettleWithin time.Duration // recovery deadline and the time that recovery must hold
	SettledAt    time.Time     // when that was stored; zero = it is not yet
	// LossesPending means that the load test will report which acknowledged writes were lost, and has
	// not yet.
	LossesPending bool
}

// Pending is a target that is neither reverted nor abandoned.
type Pending struct {
	Pod      string
	Attempts int  // to revert it that failed, in a row
	Underway bool // the last one did not fail: its revert goes on
	// when this process began with it, or last saw a step of its revert; zero = unknown
	Moved time.Time
}
