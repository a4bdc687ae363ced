package controllers

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record"
)

// Sessions are the running collections of this process, by load test. A session lives from the making of the load pods
// to the end of the test; after a restart of the operator it is opened again and resumes from its checkpoint.
type Sessions struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error) // to the load pods; nil = over the network

	mu   sync.Mutex
	byID map[types.UID]*run
}

// run is what this process knows of one load test beyond its session: none of it is lost with the process for good.
type run struct {
	session   *collect.Session
	openedAt  time.Time
	endedAt   time.Time     // when the record was first seen to have ended
	stopped   bool          // the pods were told to stop
	begun     atomic.Bool   // Start or Resume was done: the series can be read. The fault controller looks at it, too
	toldTrial time.Duration // begin of the last trial of a search that every pod has taken, since the start
	toldEnd   bool          // every pod knows that the search is over
	claimedBy types.UID     // the fault that last set out to record its targets on this load
	claimedAt time.Time
	statusAt  map[types.UID]time.Time // last write of a status, of the test and of the faults that it measures
}

// NewSessions returns an empty registry. Both controllers share it.
func NewSessions() *Sessions { return &Sessions{byID: map[types.UID]*run{}} }

// get returns a test's run, opening it with open where there is none.
func (s *Sessions) get(id types.UID, now time.Time, open func() (*collect.Session, error)) (*run, error) {
	if r := s.find(id); r != nil {
		return r, nil
	}
	session, err := open() // reads a Secret: not under the lock. One reconciler works on a test at a time, so nobody else opens it
	if err != nil {
		return nil, err
	}
	r := &run{session: session, openedAt: now, statusAt: map[types.UID]time.Time{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = r
	return r, nil
}

// find returns a test's run, or nil.
func (s *Sessions) find(id types.UID) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// drop closes and forgets a test's run. The load pods are not touched.
func (s *Sessions) drop(id types.UID) {
	s.mu.Lock()
	r := s.byID[id]
	delete(s.byID, id)
	s.mu.Unlock()
	if r != nil {
		r.session.Close()
	}
}

// dropAllBut closes and forgets every run whose test is not in keep.
func (s *Sessions) dropAllBut(keep map[types.UID]bool) {
	s.mu.Lock()
	var gone []types.UID
	for id := range s.byID {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	s.mu.Unlock()
	for _, id := range gone {
		s.drop(id)
	}
}

// Close ends all sessions, so that the process can exit. The load pods go on and keep what was not acknowledged.
func (s *Sessions) Close() { s.dropAllBut(nil) }

// read gives a run's series to f; false where there is no run, or none that has begun.
func (r *run) read(f func(*record.Series)) bool {
	if r == nil || !r.begun.Load() {
		return false
	}
	r.session.Read(f)
	return true
}

// statusEvery is the least time between two writes of figures that move.
const statusEvery = 2 * time.Second

// due says whether it is an object's turn to have its moving figures written, and takes the turn.
func (s *Sessions) due(r *run, object types.UID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil || now.Sub(r.statusAt[object]) >= statusEvery {
		if r != nil {
			r.statusAt[object] = now
		}
		return true
	}
	return false
}

// claimFor is how long a fault has a load to itself from setting out to record its targets: by then others see the record.
const claimFor = 5 * time.Second

// taken says whether another fault has claimed a load.
func (s *Sessions) taken(r *run, fault types.UID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.claimedBy != fault && now.Sub(r.claimedAt) < claimFor
}

// claim lets one fault at a time record its targets on a load: two that waited for the same steadiness would measure each other.
func (s *Sessions) claim(r *run, fault types.UID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil || r.claimedBy != fault && now.Sub(r.claimedAt) < claimFor {
		return false
	}
	r.claimedBy, r.claimedAt = fault, now
	return true
}
