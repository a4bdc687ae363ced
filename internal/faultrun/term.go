package faultrun

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/podwatch"
)

// Term is the part of one manager in the sessions, from the begin of its leadership to the end of
// it. What it begins uses the manager's clients: all but the reverters ends with it, and those get
// the clients of the next Term. It may end while that has begun: each ends its own only.
type Term struct {
	*Registry
	over atomic.Bool
}

// NewTerm returns the Term of a manager that does not lead yet.
func (r *Registry) NewTerm() *Term {
	return &Term{Registry: r}
}

// leads reports whether a manager of this process leads: then reconciles write what the reverters
// have done.
func (r *Registry) leads() bool {
	return r.leader.Load() != nil
}

// Lead begins the leadership.
func (t *Term) Lead() {
	if t.over.Load() {
		return
	}
	if t.leader.Store(t); t.over.Load() { // it has ended meanwhile
		t.leader.CompareAndSwap(t, nil)
	}
}

// Close ends the Term, and the sessions in which nothing is to be reverted. After that it begins
// nothing but a reverter that is missing.
func (t *Term) Close() {
	t.over.Store(true)
	t.leader.CompareAndSwap(t, nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, s := range t.byID {
		if s.release(t) {
			delete(t.byID, id)
		}
	}
}

// Adopt returns the reverter of a recorded fault, and begins it with what is stored if there is
// none. by is called if it has no means of this Term.
func (t *Term) Adopt(ctx context.Context, f *v1alpha1.RedisFault, by func() *Means) (v *Reverter) {
	if v := t.Find(f.UID).ReverterOf(&f.Status); v != nil && v.by.Load().term == t {
		return v
	}
	means := by()
	means.term = t
	t.in(f, func(s *Session) {
		v = s.reverter
		if v != nil && v.isOf(&f.Status) {
			if !t.over.Load() {
				v.by.Store(means)
			}
			return
		}
		if v != nil && v.isNewer(&f.Status) {
			return // the copy of the fault is stale
		}
		if v != nil {
			v.end()
		}
		v = newReverter(ctx, s, f, means)
		s.reverter = v
		v.start()
	})
	return v
}

// StopObserving ends what this Term follows of a fault.
func (t *Term) StopObserving(f *v1alpha1.RedisFault) {
	if s := t.Find(f.UID); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.observed.term == t {
			s.stopObserving()
		}
	}
}

// DropReverter ends the reverter of the record that a fault has, which is not used any more, and of
// which nothing is left.
func (t *Term) DropReverter(f *v1alpha1.RedisFault) {
	if s := t.Find(f.UID); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.reverter != nil && !t.over.Load() && s.reverter.isOf(&f.Status) {
			s.reverter.end()
			s.reverter = nil
		}
	}
}

// FollowPods follows the pods of a fault's target from the selection of the targets until the fault
// settles, in any process that reconciles it: they are part of its timeline, and a change of one is
// a reason to reconcile it. watch begins that; it is not called if they are followed already. It
// returns nil if the Term is over.
func (t *Term) FollowPods(
	f *v1alpha1.RedisFault, watch func(ctx context.Context, changed func()) *podwatch.Watch,
) (pods *podwatch.Watch) {
	t.in(f, func(s *Session) {
		o := s.observersOf(t)
		if o == nil {
			return
		}
		if o.pods == nil {
			ctx, cancel := context.WithCancel(context.Background()) // it outlives the reconcile
			o.cancel = append(o.cancel, cancel)
			o.pods = watch(ctx, func() { t.Notify(s.key) })
		}
		pods = o.pods
	})
	return pods
}

// errNotWatched means that the pods of a target are not known. A witness does not list them ten
// times a second instead.
var errNotWatched = errors.New("the pods of the target are not watched")

// WatchServers polls the servers of a fault's target from before the injection on, for as long as
// given at most: for objects that are deleted before they settle. It returns when the state before
// the injection is known; one poll takes milliseconds.
func (t *Term) WatchServers(f *v1alpha1.RedisFault, redis target.Redis, atMost time.Duration) {
	var witness *fault.Witness
	t.in(f, func(s *Session) {
		o := s.observersOf(t)
		if o == nil || o.witness != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), atMost) // it outlives the reconcile
		witness = fault.Watch(ctx, redis, func(context.Context) ([]corev1.Pod, error) {
			pods, ok := redis.Watched.Pods()
			if !ok {
				return nil, errNotWatched
			}
			return pods, nil
		})
		o.witness, o.cancel = witness, append(o.cancel, cancel)
	})
	if witness != nil {
		witness.AwaitLook()
	}
}

// NotePods adds the present pods of a fault's target to its journal.
func (t *Term) NotePods(f *v1alpha1.RedisFault, now Snapshot) {
	t.in(f, func(s *Session) {
		o := s.observersOf(t)
		if o == nil {
			return
		}
		if o.journal == nil {
			o.journal = &Journal{}
		}
		o.journal.add(now)
	})
}

// CheckStops returns what the stop conditions say before the injection; nil = nothing is in its
// way. It is not known while they are evaluated: a notice follows. lately returns the state of the
// load; nil = there is no record.
func (t *Term) CheckStops(
	f *v1alpha1.RedisFault, conditions *Stops, lately func() *impact.Live,
) (found *v1alpha1.Breach, known bool) {
	t.in(f, func(s *Session) {
		if t.over.Load() {
			return
		}
		c := s.check
		switch {
		case c == nil || c.term != t || c.ended() && t.clock.Since(c.at) > checkedFor:
			s.stopChecking()
			s.check = t.beginCheck(s.key, conditions, lately)
		case c.ended():
			s.check, found, known = nil, c.found, true
		}
	})
	return found, known
}

// NoteCall notes when an injection was called that is not complete.
func (t *Term) NoteCall(f *v1alpha1.RedisFault, at time.Time) {
	t.in(f, func(s *Session) { s.called = at })
}

// in calls act with the locked session of a fault: another one, if that ends just now.
func (t *Term) in(f *v1alpha1.RedisFault, act func(s *Session)) {
	for !t.session(f).whileOpen(act) {
	}
}
