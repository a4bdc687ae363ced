// Package faultrun is what one process does with the faults between two reconciles. A Session holds
// all of one fault that lives in the process and not in its object: the reverter with its deadline,
// what follows its pods and servers, the stop conditions, and when its injection was last called. A
// Registry holds the sessions, and a Term is what one manager of the process begins in them.
// docs/decisions/0014-who-writes-a-fault.md says who may write what.
package faultrun

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Registry holds the sessions of the faults of this process. They outlive a manager, which ends
// when it loses the leadership. It is created by NewRegistry and ended by Close.
type Registry struct {
	clock   clock.PassiveClock
	changed chan event.GenericEvent
	leader  atomic.Pointer[Term] // nil = no manager of this process leads

	mu   sync.Mutex // locked before that of a session
	byID map[types.UID]*Session

	starting sync.Mutex // locked after that of a session
	closed   bool
	running  sync.WaitGroup
}

// notices is how many notices can wait for a manager; others are dropped, as every fault is
// reconciled when a manager starts.
const notices = 1024

// NewRegistry returns a Registry without a session. A nil clock is the real one.
func NewRegistry(now clock.PassiveClock) *Registry {
	if now == nil {
		now = clock.RealClock{}
	}
	return &Registry{
		clock:   now,
		changed: make(chan event.GenericEvent, notices),
		byID:    map[types.UID]*Session{},
	}
}

// Close ends the process's part in all faults, reverted or not.
func (r *Registry) Close() {
	r.starting.Lock()
	r.closed = true
	r.starting.Unlock()
	r.mu.Lock()
	for _, s := range r.byID {
		s.end()
	}
	clear(r.byID)
	r.mu.Unlock()
	r.running.Wait()
}

// Pending are the faults that are not reverted yet, among them those that were perhaps injected.
func (r *Registry) Pending() []client.ObjectKey {
	var keys []client.ObjectKey
	for _, s := range r.all() {
		if s.Reverter().isPending() {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Changed receives a fault whenever an attempt to revert it has ended, a check of its stop
// conditions has, or a pod of its target has changed.
func (r *Registry) Changed() <-chan event.GenericEvent {
	return r.changed
}

// Notify makes a manager reconcile a fault.
func (r *Registry) Notify(key client.ObjectKey) {
	f := &v1alpha1.RedisFault{}
	f.Namespace, f.Name = key.Namespace, key.Name
	select {
	case r.changed <- event.GenericEvent{Object: f}:
	default:
	}
}

// Find returns the session of a fault; nil if this process does nothing for it. A nil Session has
// nothing.
func (r *Registry) Find(id types.UID) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// HoldsOther reports whether there is a session of another object than heir that has, or had, the
// name.
func (r *Registry) HoldsOther(key client.ObjectKey, heir types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.byID {
		if s.key == key && id != heir {
			return true
		}
	}
	return false
}

// Held are the faults that have a session.
func (r *Registry) Held() map[types.UID]client.ObjectKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := map[types.UID]client.ObjectKey{}
	for id, s := range r.byID {
		held[id] = s.key
	}
	return held
}

// End ends the session of a fault that is over.
func (r *Registry) End(id types.UID) {
	if s := r.Find(id); s != nil {
		r.remove(s)
	}
}

// remove ends a session. A later one of the same fault remains.
func (r *Registry) remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.end()
	if r.byID[s.id] == s {
		delete(r.byID, s.id)
	}
}

// Gone ends the sessions of faults whose objects do not exist any more. What such a fault has
// broken is reverted first, as after a forced removal of its finalizer. heir is the object that has
// the name now; "" = none has.
func (r *Registry) Gone(key client.ObjectKey, heir types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.byID {
		if s.key == key && id != heir && !s.revertOrphan() {
			s.end()
			delete(r.byID, id)
		}
	}
}

// PodsIn are the pods of a namespace that are followed for any fault. It locks sessions one after
// the other: nothing that a session calls under its lock may call it.
func (r *Registry) PodsIn(namespace string) []corev1.Pod {
	var all []corev1.Pod
	for _, s := range r.all() {
		if s.key.Namespace == namespace {
			pods, _ := s.Pods().Pods()
			all = append(all, pods...)
		}
	}
	return all
}

func (r *Registry) all() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Session
	for _, s := range r.byID {
		all = append(all, s)
	}
	return all
}

// session returns the session of a fault, and begins it if there is none.
func (r *Registry) session(f *v1alpha1.RedisFault) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.byID[f.UID]
	if s == nil {
		s = &Session{
			registry: r,
			key:      client.ObjectKeyFromObject(f),
			id:       f.UID,
		}
		r.byID[f.UID] = s
	}
	return s
}

// start runs f in a goroutine that Close waits for; it returns false, and does not, once the
// process ends.
func (r *Registry) start(f func()) bool {
	r.starting.Lock()
	defer r.starting.Unlock()
	if !r.closed {
		r.running.Go(f)
	}
	return !r.closed
}
