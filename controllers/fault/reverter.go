package fault

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Limits of a revert.
const (
	// callTimeout limits one call of an injector: a stopped API server answers none.
	callTimeout = 10 * time.Second
	// readTimeout limits the read of the fault before a revert that no reconcile has asked for.
	readTimeout = 250 * time.Millisecond
	// deadlineSlack is how long after its end a fault is reverted without a reconcile: the reconciler checks the effect once more before it asks.
	deadlineSlack = 500 * time.Millisecond
	// revertEvery is the time between two attempts; after errors it doubles, up to revertAtMost.
	revertEvery, revertAtMost = 250 * time.Millisecond, 5 * time.Second
	// revertsAtOnce is how many targets are reverted at once if they have nothing to do with one another.
	revertsAtOnce = 16
)

// reverter reverts one fault in a goroutine of its own: when the reconciler asks for it, or when its time is over. It holds all that a revert needs and
// what this process has done, whether the API server has stored it or not. So a fault ends on time although the API server does not answer, its
// status cannot be written, this process does not lead any more, or all workers are busy.
type reverter struct {
	of  *Reverters
	key client.ObjectKey
	id  types.UID
	log logr.Logger
	by  atomic.Pointer[means]

	acting chan struct{}      // holds one value during calls that change Redis or the cluster
	begun  context.Context    // done when the revert begins: from then on nothing is injected
	begin  context.CancelFunc //
	over   context.Context    // done when the process ends, or nothing is left to do
	end    context.CancelFunc //
	wake   chan struct{}      // after a change of the fields below

	orphaned atomic.Bool // there is no object any more

	mu       sync.Mutex
	traits   contract.Traits
	injector contract.Injector // with which it was injected, whose connections may still be logged in after a change of the password; nil in another process
	refused  bool              // its login was: the next attempt reads the Secrets anew
	known    progress
	deadline time.Time
	endsAt   time.Time
	changed  map[string]bool      // pods whose target this process has changed since it was last stored
	rewrote  map[string]bool      // pods whose record the last call has changed: it must be stored before the next
	moved    map[string]time.Time // when the last step of the revert was seen, by pod
	born     time.Time
	loaded   time.Time // when the load test was last seen; until then born
	tried    bool
	watching bool          // the stop conditions are evaluated
	attempts chan struct{} // closed after the first attempt on all targets
}

// means is by what a reverter acts: what belongs to a manager, whose caches end with it. The next manager of the process replaces it.
type means struct {
	manager *Reconciler // whose they are
	live    client.Reader
	// statuses is used only while this process does not lead: otherwise reconciles write the status.
	statuses client.SubResourceWriter
	// build makes the injector from the Secrets. It always returns one: a missing Secret must not keep a node closed.
	build func(ctx context.Context) (contract.Injector, error)
	stops *stops // nil = the fault has no stop conditions
}

// run waits for the end of the fault and reverts it.
func (v *reverter) run() {
	if !v.awaitEnd() {
		return
	}
	failed := 0
	for first := true; ; first = false {
		complete, progressed := v.revertOnce()
		if first {
			close(v.attempts)
		}
		v.of.notify(v.key)
		v.storeRecords()
		if complete {
			if v.orphaned.Load() {
				v.of.drop(v.id)
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
func (v *reverter) awaitEnd() bool {
	for {
		v.mu.Lock()
		endsAt := v.endsAt
		v.mu.Unlock()
		timer, stop := context.WithCancel(v.over)
		if !endsAt.IsZero() {
			timer, stop = context.WithTimeout(v.over, endsAt.Add(deadlineSlack).Sub(v.of.clock.Now()))
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
			if !v.overdue() { // another operator has completed the injection
				continue
			}
			v.log.Info("Reverting at the end of the fault's time: no reconcile has done so")
			v.ask()
			return true
		}
	}
}

// endedElsewhere reports whether another operator has reverted the fault, and takes over what that has injected. Without an answer of the API server, or without
// the object, whose name another one may have by now, it has done neither.
func (v *reverter) endedElsewhere() bool {
	ctx, cancel := context.WithTimeout(v.over, readTimeout)
	defer cancel()
	f := &v1alpha1.RedisFault{}
	if err := v.by.Load().live.Get(ctx, v.key, f); err != nil || f.UID != v.id {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.known.same(&f.Status) || f.Status.RevertedAt != nil {
		return true
	}
	v.known.merge(&f.Status, v.changed)
	v.endsAt = v.known.endOf(v.traits, v.deadline)
	return false
}

// overdue reports whether the fault's time is over.
func (v *reverter) overdue() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.endsAt.IsZero() && !v.of.clock.Now().Before(v.endsAt)
}

// ask begins the revert. It may be called again.
func (v *reverter) ask() {
	v.mu.Lock()
	v.known.begin(v.of.clock.Now())
	v.mu.Unlock()
	v.begin()
}

// during calls act, unless the revert has begun. Its context ends when the revert begins.
func (v *reverter) during(ctx context.Context, act func(ctx context.Context)) bool {
	select {
	case v.acting <- struct{}{}:
		defer func() { <-v.acting }()
	case <-v.begun.Done():
	case <-ctx.Done():
		return false
	}
	if v.begun.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.begun, cancel)()
	act(ctx)
	return true
}

// learn takes over what was done to a target by a call in during, and with which injector.
func (v *reverter) learn(s *scope, pod string) {
	v.mu.Lock()
	v.known, v.injector, v.traits = progressOf(&s.fault.Status), s.injector, s.traits
	v.changed[pod] = true
	v.endsAt = v.known.endOf(v.traits, v.deadline)
	v.mu.Unlock()
	v.watchStops()
	v.poke()
}

// catchUp takes over what is stored: another operator may act on the fault as well. What is not stored yet remains.
func (v *reverter) catchUp(status *v1alpha1.RedisFaultStatus) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known.merge(status, v.changed)
	for _, stored := range status.Targets {
		i := slices.IndexFunc(v.known.targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == stored.Pod })
		if i < 0 {
			continue
		}
		if t := &v.known.targets[i]; sameWhenStored(&stored, t) {
			if v.changed[t.Pod] && v.rewrote[t.Pod] { // the next attempt waits for this
				v.poke()
			}
			delete(v.changed, t.Pod)
		}
	}
}

// abandon ends the attempts on the targets for which it is true, and records the commands for a person.
func (v *reverter) abandon(is func(t *v1alpha1.FaultTarget) bool, command func(t *v1alpha1.FaultTarget) string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.known.targets {
		if t := &v.known.targets[i]; open(t) && is(t) {
			t.RevertAbandoned, t.ManualRevertCommand = true, shorten(command(t), maxCommand, len(v.known.targets))
			v.log.Info("Abandoned the revert", "target", t.Pod, "attempts", t.RevertAttempts, "cause", t.RevertError, "manualRevertCommand", t.ManualRevertCommand)
		}
	}
	v.known.conclude(v.of.clock.Now())
}

// progress is what this process knows.
func (v *reverter) progress() (p progress, tried bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p = v.known
	p.targets = cloneTargets(p.targets)
	return p, v.tried
}

// revertOnce calls Revert on every target that is due. progressed is false if all calls failed.
func (v *reverter) revertOnce() (complete, progressed bool) {
	v.acting <- struct{}{}
	defer func() { <-v.acting }()
	injector := v.injectorNow()
	p, _ := v.progress()
	var reverting errgroup.Group
	reverting.SetLimit(1)
	if injector.Traits().Separate { // a deleted fault must be removed in time even if many servers do not answer
		reverting.SetLimit(revertsAtOnce)
	}
	var mu sync.Mutex
	for i := range p.targets {
		if t := &p.targets[i]; open(t) && v.isStored(t.Pod) {
			reverting.Go(func() error {
				did := v.revertOne(injector, t, len(p.targets))
				mu.Lock()
				defer mu.Unlock()
				progressed = progressed || did
				return nil
			})
		}
	}
	_ = reverting.Wait() // no revert returns an error
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tried = true
	v.known.conclude(v.of.clock.Now())
	return v.known.revertedAt != nil, progressed
}

// revertOne calls Revert for one of several targets and takes over the result. It returns whether that did not fail.
func (v *reverter) revertOne(injector contract.Injector, t *v1alpha1.FaultTarget, targets int) bool {
	logger := v.log.WithValues("target", t.Pod)
	before, step := t.Revert.DeepCopy(), t.Progress
	ctx, cancel := context.WithTimeout(v.over, callTimeout)
	defer cancel()
	progress, err := injector.Revert(ctx, t)
	t.Progress = ""
	switch {
	case err != nil:
		t.RevertAttempts++
		t.RevertError = shorten(err.Error(), maxError, targets)
		logger.V(1).Info("Retrying to revert", "attempts", t.RevertAttempts, "cause", err.Error())
	case !progress.Complete():
		t.Progress, t.RevertAttempts = shorten(progress.Message, maxProgress, targets), 0
		t.RevertError = shorten(progress.Message, maxError, targets)
		logger.V(1).Info("Revert is under way", "progress", t.Progress)
	default:
		t.RevertError = ""
		t.RevertedAt = new(metav1.NewMicroTime(v.of.clock.Now()))
		logger.Info("Reverted")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.IndexFunc(v.known.targets, func(o v1alpha1.FaultTarget) bool { return o.Pod == t.Pod }); i >= 0 && open(&v.known.targets[i]) {
		v.known.targets[i] = *t
	}
	if err == nil && t.Progress != step {
		v.moved[t.Pod] = v.of.clock.Now()
	}
	v.changed[t.Pod] = true
	v.rewrote[t.Pod] = t.RevertedAt == nil && !equality.Semantic.DeepEqual(before, t.Revert)
	if err != nil && isRefusedLogin(err) {
		v.refused = !v.refused
	}
	return err == nil
}

// movedAt is when this process last saw a step of the revert of a pod's target, or began with the fault; zero without a reverter.
func (v *reverter) movedAt(pod string) time.Time {
	if v == nil {
		return time.Time{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if at, is := v.moved[pod]; is {
		return at
	}
	return v.born
}

// loadAbsent notes whether the load test exists, and returns for how long this process has not seen it; 0 without a reverter.
func (v *reverter) loadAbsent(exists bool, now time.Time) time.Duration {
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if exists {
		v.loaded = now
	}
	return now.Sub(v.loaded)
}

// exclusively calls f while no other call changes Redis or the cluster.
func (v *reverter) exclusively(f func()) {
	v.acting <- struct{}{}
	defer func() { <-v.acting }()
	f()
}

// isRefusedLogin reports whether a server refused the login.
func isRefusedLogin(err error) bool {
	return slices.ContainsFunc([]string{"WRONGPASS", "NOAUTH", "invalid password", "invalid username-password"}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// injectorNow is the injector for the next attempt.
func (v *reverter) injectorNow() contract.Injector {
	v.mu.Lock()
	own, refused := v.injector, v.refused
	v.mu.Unlock()
	if own != nil && !refused {
		return own
	}
	ctx, cancel := context.WithTimeout(v.over, callTimeout)
	defer cancel()
	made, err := v.by.Load().build(ctx)
	if err != nil {
		v.log.V(1).Info("Reverting without a login", "cause", err.Error())
	} else if own == nil {
		v.mu.Lock()
		v.injector = made
		v.mu.Unlock()
	}
	return made
}

// isStored reports whether the API server has the target's record.
func (v *reverter) isStored(pod string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.rewrote[pod] || !v.changed[pod]
}

// storeRecords stores what the next attempt must not begin without, if no reconcile does: this process does not lead, and whoever does stores its own work only.
func (v *reverter) storeRecords() {
	p, _ := v.progress()
	if v.of.leads.Load() || !slices.ContainsFunc(p.targets, func(t v1alpha1.FaultTarget) bool { return open(&t) && !v.isStored(t.Pod) }) {
		return
	}
	ctx, cancel := context.WithTimeout(v.over, callTimeout)
	defer cancel()
	by, f := v.by.Load(), &v1alpha1.RedisFault{}
	if err := by.live.Get(ctx, v.key, f); err != nil || f.UID != v.id || !v.is(&f.Status) {
		return
	}
	before := f.DeepCopy()
	v.catchUp(&f.Status)
	p, _ = v.progress()
	p.into(&f.Status)
	if err := by.statuses.Patch(ctx, f, state.OptimisticPatch(before)); err != nil {
		v.log.V(1).Info("Retrying to store what the revert relies on", "cause", err.Error())
		return
	}
	v.catchUp(&f.Status)
}

// pause waits until the next attempt; it returns false when the process ends.
func (v *reverter) pause(d time.Duration) bool {
	timer, stop := context.WithTimeout(v.over, d)
	defer stop()
	select {
	case <-timer.Done():
	case <-v.wake:
	}
	return v.over.Err() == nil
}

func (v *reverter) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// awaitAttempt waits for the first attempt on all targets, or the end of ctx.
func (v *reverter) awaitAttempt(ctx context.Context) {
	select {
	case <-v.attempts:
	case <-ctx.Done():
	}
}
