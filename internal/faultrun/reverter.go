package faultrun

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Limits of a revert.
const (
	// CallTimeout limits one call of an injector: a stopped API server answers none.
	CallTimeout = 10 * time.Second
	// ReadTimeout limits the read of the fault before a revert that no reconcile has asked for.
	ReadTimeout = 250 * time.Millisecond
	// deadlineSlack is how long after its end a fault is reverted without a reconcile: the reconciler
	// checks the effect once more before it asks.
	deadlineSlack = 500 * time.Millisecond
	// revertEvery is the time between two attempts; after errors it doubles, up to revertAtMost.
	revertEvery, revertAtMost = 250 * time.Millisecond, 5 * time.Second
	// revertsAtOnce is how many targets are reverted at once if they have nothing to do with one
	// another.
	revertsAtOnce = 16
)

// Reverter reverts one fault in a goroutine of its own: when the reconciler asks for it, or when
// its time is over. It holds all that a revert needs and what this process has done, whether the
// API server has stored it or not. So a fault ends on time although the API server does not answer,
// its status cannot be written, this process does not lead any more, or all workers are busy.
type Reverter struct {
	session *Session
	log     logr.Logger
	by      atomic.Pointer[Means]

	acting   chan struct{}      // holds one value during calls that change Redis or the cluster
	begun    context.Context    // done when the revert begins: from then on nothing is injected
	begin    context.CancelFunc // of begun
	over     context.Context    // done when the process ends, or nothing is left to do
	end      context.CancelFunc // of over
	wake     chan struct{}      // after a change of the fields below
	attempts chan struct{}      // closed after the first attempt on all targets
	orphaned atomic.Bool        // there is no object any more

	mu   sync.Mutex
	work work
	// with which it was injected, whose connections may still be logged in after a change of the
	// password; nil in another process
	injector contract.Injector
	refused  bool // its login was: the next attempt reads the Secrets anew
	watching bool // the stop conditions are evaluated
	// closed when the renewals have ended; nil = they have not begun
	renewing <-chan struct{}
}

// Means is by what a reverter acts: what belongs to a manager, whose caches end with it. The next
// manager of the process replaces it. The injector of an injection is kept, for its connections:
// what it asks of the cluster past caches.
type Means struct {
	Traits contract.Traits
	Live   client.Reader
	// Statuses is used only while this process does not lead: otherwise reconciles write the status.
	Statuses client.SubResourceWriter
	// Build makes the injector from the Secrets. It always returns one: a missing Secret must not keep
	// a node closed.
	Build func(ctx context.Context) (contract.Injector, error)
	Stops *Stops // nil = the fault has no stop conditions

	term *Term // whose they are
}

// newReverter returns a reverter with what is stored.
func newReverter(ctx context.Context, s *Session, f *v1alpha1.RedisFault, by *Means) *Reverter {
	v := &Reverter{
		session:  s,
		log:      log.FromContext(ctx).WithValues("faultType", f.Spec.Action.Type),
		acting:   make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
		attempts: make(chan struct{}),
		work:     newWork(f, by.Traits, s.registry.clock.Now()),
	}
	v.by.Store(by)
	// Not the context of a reconcile: a reverter outlives it, and the manager.
	v.over, v.end = context.WithCancel(context.Background())
	v.begun, v.begin = context.WithCancel(context.Background())
	if v.work.known.revertingSince != nil {
		v.begin()
	}
	return v
}

// start begins to wait for the end of the fault.
func (v *Reverter) start() {
	if !v.session.registry.start(v.run) {
		v.end()
		return
	}
	v.watchStops()
	v.watchRenewals()
}

// run waits for the end of the fault and reverts it.
func (v *Reverter) run() {
	if !v.awaitEnd() {
		return
	}
	v.awaitRenewals()
	registry, failed := v.session.registry, 0
	for first := true; ; first = false {
		// another fault may act on the servers by now
		if !first && !registry.leads() && v.endedElsewhere() {
			v.end()
			return
		}
		complete, progressed := v.revertOnce()
		if first {
			close(v.attempts)
		}
		registry.Notify(v.session.key)
		v.storeRecords()
		if complete {
			if v.orphaned.Load() {
				registry.remove(v.session)
			}
			return
		}
		failed++
		if progressed {
			failed = 0
		}
		if !v.pause(min(revertEvery<<min(failed, 10), revertAtMost)) {
			return
		}
	}
}

// awaitEnd returns when the fault is to be reverted; false if that is not to happen here.
func (v *Reverter) awaitEnd() bool {
	for {
		v.mu.Lock()
		endsAt := v.work.endsAt
		v.mu.Unlock()
		timer, stop := context.WithCancel(v.over)
		if !endsAt.IsZero() {
			timer, stop = context.WithTimeout(v.over, endsAt.Add(deadlineSlack).Sub(v.now()))
		}
		select {
		case <-v.begun.Done():
			stop()
			return v.over.Err() == nil
		case <-v.wake:
			stop()
		case <-timer.Done():
			stop()
			if v.over.Err() != nil {
				return false
			}
			if v.endedElsewhere() {
				v.end()
				return false
			}
			if !v.Overdue() { // another operator has completed the injection
				continue
			}
			v.log.Info("Reverting at the end of the fault's time: no reconcile has done so")
			v.Ask()
			return true
		}
	}
}

// endedElsewhere reports whether another operator has reverted the fault, and takes over what that
// has injected. Without an answer of the API server, or without the object, whose name another one
// may have by now, it has done neither.
func (v *Reverter) endedElsewhere() bool {
	ctx, cancel := context.WithTimeout(v.over, ReadTimeout)
	defer cancel()
	f := &v1alpha1.RedisFault{}
	err := v.by.Load().Live.Get(ctx, v.session.key, f)
	if err != nil || f.UID != v.session.id {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.work.known.same(&f.Status) || f.Status.RevertedAt != nil {
		return true
	}
	v.work.merge(&f.Status)
	v.work.setEnd()
	return false
}

func (v *Reverter) now() time.Time {
	return v.session.registry.clock.Now()
}

// isOf reports whether a status has the record of this reverter.
func (v *Reverter) isOf(status *v1alpha1.RedisFaultStatus) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.work.known.same(status)
}

// isPending reports whether the fault was perhaps injected and is not reverted.
func (v *Reverter) isPending() bool {
	if v == nil || v.over.Err() != nil {
		return false
	}
	p, _ := v.Progress()
	return p.Begun() && p.revertedAt == nil
}

// isNewer reports whether there may be something to revert of a later record than that of a status.
func (v *Reverter) isNewer(status *v1alpha1.RedisFaultStatus) bool {
	p, _ := v.Progress()
	return v.isPending() && p.recorded != nil && status.StartTime != nil &&
		p.recorded.After(status.StartTime.Time)
}

// Overdue reports whether the fault's time is over.
func (v *Reverter) Overdue() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.work.endsAt.IsZero() && !v.now().Before(v.work.endsAt)
}

// Ask begins the revert. It may be called again.
func (v *Reverter) Ask() {
	v.mu.Lock()
	v.work.known.begin(v.now())
	v.mu.Unlock()
	v.begin()
}

// Reverting reports whether the revert has begun.
func (v *Reverter) Reverting() bool {
	return v.begun.Err() != nil
}

// During calls act, unless the revert has begun, or nobody here would do it. Its context ends when
// the revert begins.
func (v *Reverter) During(ctx context.Context, act func(ctx context.Context)) bool {
	select {
	case v.acting <- struct{}{}:
		defer func() { <-v.acting }()
	case <-v.begun.Done():
	case <-ctx.Done():
		return false
	}
	// over: another operator has reverted it, or nobody would here
	if v.begun.Err() != nil || v.over.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.begun, cancel)()
	act(ctx)
	return true
}

// Exclusively calls f while no other call changes Redis or the cluster.
func (v *Reverter) Exclusively(f func()) {
	v.acting <- struct{}{}
	defer func() { <-v.acting }()
	f()
}

// Learn takes over what was done to a target by a call in During, and with which injector.
func (v *Reverter) Learn(
	status *v1alpha1.RedisFaultStatus, injector contract.Injector, pod string,
) {
	known, traits := ProgressOf(status), injector.Traits()
	v.mu.Lock()
	v.work.learn(known)
	v.work.traits, v.injector = traits, injector
	v.work.changed[pod] = true
	v.work.setEnd()
	v.mu.Unlock()
	v.watchStops()
	v.watchRenewals()
	v.poke()
}

// CatchUp takes over what is stored: another operator may act on the fault as well. What is not
// stored yet remains.
func (v *Reverter) CatchUp(status *v1alpha1.RedisFaultStatus) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.work.catchUp(status) {
		v.poke()
	}
}

// Abandon ends the attempts on the targets for which it is true, and records the commands for a
// person.
func (v *Reverter) Abandon(
	is func(t *v1alpha1.FaultTarget) bool, command func(t *v1alpha1.FaultTarget) string,
) {
	v.mu.Lock()
	defer v.mu.Unlock()
	targets := v.work.known.targets
	for i := range targets {
		if t := &targets[i]; IsOpen(t) && is(t) {
			t.RevertAbandoned, t.ManualRevertCommand = true, Shorten(command(t), MaxCommand, len(targets))
			v.log.Info("Abandoned the revert", "target", t.Pod, "attempts", t.RevertAttempts, "cause",
				t.RevertError, "manualRevertCommand", t.ManualRevertCommand)
		}
	}
	v.work.known.conclude(v.now())
}

// Progress is what this process knows, and whether it has tried to revert every target.
func (v *Reverter) Progress() (p Progress, tried bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p = v.work.known
	p.targets = cloneTargets(p.targets)
	return p, v.work.tried
}

// MovedAt is when this process last saw a step of the revert of a pod's target, or began with the
// fault; zero without a reverter.
func (v *Reverter) MovedAt(pod string) time.Time {
	if v == nil {
		return time.Time{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if at, ok := v.work.moved[pod]; ok {
		return at
	}
	return v.work.born
}

// LoadAbsent notes whether the load test exists, and returns for how long this process has not seen
// it; 0 without a reverter.
func (v *Reverter) LoadAbsent(exists bool, now time.Time) time.Duration {
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if exists {
		v.work.loaded = now
	}
	return now.Sub(v.work.loaded)
}

// pause waits until the next attempt; it returns false when the process ends.
func (v *Reverter) pause(d time.Duration) bool {
	timer, stop := context.WithTimeout(v.over, d)
	defer stop()
	select {
	case <-timer.Done():
	case <-v.wake:
	}
	return v.over.Err() == nil
}

func (v *Reverter) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// AwaitAttempt waits for the first attempt on all targets, or the end of ctx.
func (v *Reverter) AwaitAttempt(ctx context.Context) {
	select {
	case <-v.attempts:
	case <-ctx.Done():
	}
}
