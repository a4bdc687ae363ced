// Package runs holds the live sessions of this process with the load pods: the only bridge between the controllers. The controller of load tests
// opens and ends them; that of faults reads what they recorded.
package runs

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

// Registry holds the runs of this process, by the UID of their load test. A run lives from the creation of the load pods to the end of the test;
// after a restart of the operator it is opened again and resumes from its checkpoint.
type Registry struct {
	Dial func(ctx context.Context, network, address string) (net.Conn, error) // to the load pods; nil = over the network

	mu   sync.Mutex
	byID map[types.UID]*Run
}

// NewRegistry returns an empty registry. All controllers share it.
func NewRegistry() *Registry { return &Registry{byID: map[types.UID]*Run{}} }

// Run is what this process holds of one load test: none of it is lost with the process for good. Its fields belong to the controller of load
// tests; every method may be called on a nil Run, which has recorded nothing.
type Run struct {
	Session   *collect.Session
	OpenedAt  time.Time
	EndedAt   time.Time     // when the record was first seen to have ended
	Stopped   bool          // the load pods have accepted the request to stop
	TrialSent time.Duration // begin of the last trial of a search that every pod has taken, since the start
	EndSent   bool          // every pod has taken the end of the search

	begun     atomic.Bool
	claimedBy types.UID // the fault that last began to record its targets on this load
	claimedAt time.Time
	statusAt  map[types.UID]time.Time // last write of a status, of the test and of the faults on it
}

// Open returns a test's run; where there is none it makes one with the session that open returns.
func (r *Registry) Open(id types.UID, now time.Time, open func() (*collect.Session, error)) (*Run, error) {
	if run := r.Find(id); run != nil {
		return run, nil
	}
	session, err := open() // reads a Secret: not under the lock. One reconciler works on a test at a time, so nobody else opens it
	if err != nil {
		return nil, err
	}
	return r.Add(id, now, session), nil
}

// Add adds a run for a test that has none.
func (r *Registry) Add(id types.UID, now time.Time, session *collect.Session) *Run {
	run := &Run{Session: session, OpenedAt: now, statusAt: map[types.UID]time.Time{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = run
	return run
}

// Find returns a test's run, or nil.
func (r *Registry) Find(id types.UID) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// Close ends all runs, so that the process can exit. The load pods go on and keep what was not acknowledged.
func (r *Registry) Close() { r.Retain(nil) }

// Retain closes and forgets every run whose test is not in keep.
func (r *Registry) Retain(keep map[types.UID]bool) {
	r.mu.Lock()
	var gone []types.UID
	for id := range r.byID {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	r.mu.Unlock()
	for _, id := range gone {
		r.Drop(id)
	}
}

// Drop closes and forgets a test's run. The load pods are not touched.
func (r *Registry) Drop(id types.UID) {
	r.mu.Lock()
	run := r.byID[id]
	delete(r.byID, id)
	r.mu.Unlock()
	if run != nil && run.Session != nil {
		run.Session.Close()
	}
}

// Begin notes that the load was started or resumed: from here on its record can be read.
func (r *Run) Begin() { r.begun.Store(true) }

// Read gives the record to f; false where there is none.
func (r *Run) Read(f func(*record.Series)) bool {
	if !r.Begun() {
		return false
	}
	r.Session.Read(f)
	return true
}

// Finished says whether every load pod has ended and its whole record is here.
func (r *Run) Finished() bool { return r.Begun() && r.Session.Status().Finished }

// ClockShift is by how much this process's clock moved against the load pods' during the run.
func (r *Run) ClockShift() time.Duration {
	if !r.Begun() {
		return 0
	}
	return r.Session.Status().ClockShift
}

// Begun says whether the record can be read.
func (r *Run) Begun() bool { return r != nil && r.begun.Load() }

// statusEvery is the least time between two writes of figures that move.
const statusEvery = 2 * time.Second

// Due says whether it is an object's turn to have its moving figures written, and takes the turn. Without a run it always is.
func (r *Registry) Due(run *Run, object types.UID, now time.Time) bool {
	if run == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(run.statusAt[object]) < statusEvery {
		return false
	}
	run.statusAt[object] = now
	return true
}

// claimFor is how long a fault has a load to itself from beginning to record its targets: by then others see the record.
const claimFor = 5 * time.Second

// Taken says whether another fault has claimed a load.
func (r *Registry) Taken(run *Run, fault types.UID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return run != nil && run.taken(fault, now)
}

// Claim lets one fault at a time record its targets on a load: two that waited for the same steadiness would measure each other.
func (r *Registry) Claim(run *Run, fault types.UID, now time.Time) bool {
	if run == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if run.taken(fault, now) {
		return false
	}
	run.claimedBy, run.claimedAt = fault, now
	return true
}

func (r *Run) taken(fault types.UID, now time.Time) bool {
	return r.claimedBy != fault && now.Sub(r.claimedAt) < claimFor
}
