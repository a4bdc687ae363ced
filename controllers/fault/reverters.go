package fault

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Reverters revert the faults of this process, each in a goroutine of its own. They outlive a manager, which ends when it loses the leadership.
// They are created by NewReverters and ended by Close.
type Reverters struct {
	clock   clock.PassiveClock
	changed chan event.GenericEvent
	running sync.WaitGroup
	leads   atomic.Bool // a manager of this process leads

	mu     sync.Mutex
	byID   map[types.UID]*reverter
	closed bool
}

// notices is how many notices can wait for a manager; others are dropped, as every fault is reconciled when a manager starts.
const notices = 1024

// NewReverters returns Reverters without a fault. A nil clock is the real one.
func NewReverters(now clock.PassiveClock) *Reverters {
	if now == nil {
		now = clock.RealClock{}
	}
	return &Reverters{clock: now, changed: make(chan event.GenericEvent, notices), byID: map[types.UID]*reverter{}}
}

// Close ends the process's part in all faults, reverted or not.
func (r *Reverters) Close() {
	r.mu.Lock()
	r.closed = true
	for _, v := range r.byID {
		v.end()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// Pending are the faults that are not reverted yet, among them those that were perhaps injected.
func (r *Reverters) Pending() []client.ObjectKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []client.ObjectKey
	for _, v := range r.byID {
		if p, _ := v.progress(); p.begun() && p.revertedAt == nil && v.over.Err() == nil {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// Changed receives a fault whenever an attempt to revert it has ended, and when a pod of its target has changed.
func (r *Reverters) Changed() <-chan event.GenericEvent { return r.changed }

func (r *Reverters) notify(key client.ObjectKey) {
	f := &v1alpha1.RedisFault{}
	f.Namespace, f.Name = key.Namespace, key.Name
	select {
	case r.changed <- event.GenericEvent{Object: f}:
	default:
	}
}

// of returns the reverter of a fault's present record, or nil.
func (r *Reverters) of(f *v1alpha1.RedisFault) *reverter {
	r.mu.Lock()
	v := r.byID[f.UID]
	r.mu.Unlock()
	if v == nil || !v.is(&f.Status) {
		return nil
	}
	return v
}

func (v *reverter) is(status *v1alpha1.RedisFaultStatus) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known.same(status)
}

// adopt returns the reverter of a recorded fault, with what is stored where there was none.
func (r *Reverters) adopt(ctx context.Context, f *v1alpha1.RedisFault, traits contract.Traits, by *means) *reverter {
	if v := r.of(f); v != nil {
		return v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byID[f.UID]; old != nil {
		old.end()
	}
	v := &reverter{
		of: r, key: client.ObjectKeyFromObject(f), id: f.UID, acting: make(chan struct{}, 1), wake: make(chan struct{}, 1), attempts: make(chan struct{}),
		log:    log.FromContext(ctx).WithValues("faultType", f.Spec.Action.Type),
		traits: traits, known: progressOf(&f.Status), deadline: deadlineOf(f), changed: map[string]bool{}, rewrote: map[string]bool{}, moved: map[string]time.Time{}, born: r.clock.Now(), loaded: r.clock.Now(),
	}
	v.by.Store(by)
	// Not the context of a reconcile: a reverter outlives it, and the manager.
	v.over, v.end = context.WithCancel(context.Background())
	v.begun, v.begin = context.WithCancel(context.Background())
	v.endsAt = v.known.endOf(traits, v.deadline)
	if v.known.revertingSince != nil {
		v.begin()
	}
	if r.closed {
		v.end()
		return v
	}
	r.byID[f.UID] = v
	r.running.Go(v.run)
	v.watchStops()
	return v
}

// drop ends the reverter of a fault that is over.
func (r *Reverters) drop(id types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.byID[id]; v != nil {
		v.end()
		delete(r.byID, id)
	}
}

// orphan makes the reverter of a fault whose object was removed without a revert, as by a forced removal of its finalizer, revert it now. heir is the object that has the name now; ""
// = none has.
func (r *Reverters) orphan(key client.ObjectKey, heir types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, v := range r.byID {
		if v.key != key || id == heir {
			continue
		}
		if p, _ := v.progress(); p.revertedAt == nil { // whatever it has prepared: a call may be under way
			v.log.Info("Reverting: the object of the fault was removed")
			v.orphaned.Store(true)
			v.ask()
			continue
		}
		v.end()
		delete(r.byID, id)
	}
}
