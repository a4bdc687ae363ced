package faultrun

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target/podwatch"
)

// Session is what this process does for one fault. It begins when a Term begins something, and ends
// when the fault is over or its object is gone.
type Session struct {
	registry *Registry
	key      client.ObjectKey
	id       types.UID

	mu       sync.Mutex
	reverter *Reverter // of the latest record; nil while nothing of it may have to be reverted here
	observed observers
	check    *check    // of the stop conditions before the injection; nil = none runs
	called   time.Time // when an injection that is not complete was last called; zero = never
	over     bool      // the registry has another one by now, or none
}

// observers follow a Redis from the selection of a fault's targets until it has settled.
type observers struct {
	term    *Term // whose they are; nil = there are none
	pods    *podwatch.Watch
	witness *fault.Witness
	journal *Journal
	cancel  []context.CancelFunc
}

// Reverter returns the reverter of the present record; nil if there is none.
func (s *Session) Reverter() *Reverter {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reverter
}

// ReverterOf returns the reverter of the record that a status has; nil if there is none.
func (s *Session) ReverterOf(status *v1alpha1.RedisFaultStatus) *Reverter {
	if v := s.Reverter(); v != nil && v.isOf(status) {
		return v
	}
	return nil
}

// Pods is the watch of the pods of the target; nil if they are not followed.
func (s *Session) Pods() *podwatch.Watch {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed.pods
}

// Watched reports whether the servers of the target are polled.
func (s *Session) Watched() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed.witness != nil
}

// Sightings is what was seen of the servers.
func (s *Session) Sightings() []contract.Sighting {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	witness := s.observed.witness
	s.mu.Unlock()
	if witness == nil {
		return nil
	}
	return witness.Seen()
}

// Journal is how the pods have changed while the fault waits; nil if this process has not followed
// them.
func (s *Session) Journal() *Journal {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed.journal
}

// LastCalled is when an injection that is not complete was last called; zero if none was.
func (s *Session) LastCalled() time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.called
}

// ClearCall notes that no injection is incomplete.
func (s *Session) ClearCall() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = time.Time{}
}

// observersOf returns those of a Term, and ends those of an earlier one; nil if it is over.
func (s *Session) observersOf(t *Term) *observers {
	if t.over.Load() {
		return nil
	}
	if s.observed.term != t {
		s.stopObserving()
		s.observed.term = t
	}
	return &s.observed
}

func (s *Session) stopObserving() {
	for _, cancel := range s.observed.cancel {
		cancel()
	}
	s.observed = observers{}
}

// release ends what a Term has begun, except for the reverter. It reports whether nothing is left:
// then the session is over.
func (s *Session) release(t *Term) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.observed.term == t {
		s.stopObserving()
	}
	if s.check != nil && s.check.term == t {
		s.stopChecking()
	}
	s.over = s.over || s.reverter == nil && s.observed.term == nil && s.check == nil
	return s.over
}

func (s *Session) stopChecking() {
	if s.check != nil {
		s.check.cancel()
	}
	s.check = nil
}

// revertOrphan begins to revert what a fault without an object has broken or prepared: a call may
// be under way. It reports whether there is anything.
func (s *Session) revertOrphan() bool {
	s.mu.Lock()
	s.stopObserving()
	s.stopChecking()
	v := s.reverter
	s.mu.Unlock()
	if v == nil || v.over.Err() != nil {
		return false
	}
	// before the next line: whichever is later sees the other, this or the end of the revert
	first := !v.orphaned.Swap(true)
	if p, _ := v.Progress(); p.revertedAt != nil {
		return false
	}
	if first {
		v.log.Info("Reverting: the object of the fault was removed")
	}
	v.Ask()
	return true
}

// whileOpen calls act with the session locked; it returns false, and does not, if that is over.
func (s *Session) whileOpen(act func(s *Session)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		act(s)
	}
	return !s.over
}

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.stopObserving()
	s.stopChecking()
	if s.reverter != nil {
		s.reverter.end()
	}
}
