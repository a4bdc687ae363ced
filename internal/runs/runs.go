// Package runs holds the sessions of this process with the load pods. It is the only state that the
// controllers share. The controller of load tests opens and ends them; that of faults reads what
// they recorded.
package runs

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record/merged"
)

// Registry holds the runs of this process, by the UID of their load test. A run lives from the
// creation of the load pods to the end of the test; after a restart of the operator it is opened
// again and resumes from its checkpoint.
type Registry struct {
	// to the load pods; nil = over the network
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Memory collect.Memory // of all records

	mu   sync.Mutex
	byID map[types.UID]*Run
}

// NewRegistry returns an empty registry. All controllers share it.
func NewRegistry() *Registry {
	return &Registry{byID: map[types.UID]*Run{}}
}

// Run is the state of one load test in this process; all of it can be restored after a restart. Its
// fields belong to the controller of load tests; the methods that read may be called on a nil Run,
// which has recorded nothing.
type Run struct {
	Session  *collect.Session
	OpenedAt time.Time
	EndedAt  time.Time // when the record was first seen to have ended
	Stopped  bool      // the load pods have accepted the request to stop
	// the load pods have accepted the request to end the load, and to read their ledgers back
	Ended bool
	// when the load pods were first told to remove the keys of the load
	CleaningSince time.Time
	// begin of the last trial of a search that every pod has taken, since the start
	TrialSent time.Duration
	Lost      map[int]string // why load pods were lost, as it showed first, by index
	EndSent   bool           // every pod has taken the end of the search
	MetricsAt time.Time      // when the metrics API was last read
	NamedAt   time.Time      // when the pods of the servers were last looked for
	ExitsAt   time.Time      // when the target's containers were last looked at
	// how often each of them had ended then, by the UID of its pod and its name
	Ends map[string]int32

	begun     atomic.Bool
	claimedBy types.UID // the fault that last began to record its targets on this load
	claimedAt time.Time
	statusAt  map[types.UID]time.Time // last write of a status, of the test and of the faults on it
}

// Open returns a test's run; where there is none it creates one with the session that open returns.
func (r *Registry) Open(
	id types.UID, now time.Time, open func() (*collect.Session, error),
) (*Run, error) {
	if run := r.Find(id); run != nil {
		return run, nil
	}
	// reads a Secret, so not under the lock: only one worker reconciles a test at a time
	session, err := open()
	if err != nil {
		return nil, err
	}
	return r.Add(id, now, session), nil
}

// Add adds a run for a test that has none.
func (r *Registry) Add(id types.UID, now time.Time, session *collect.Session) *Run {
	run := &Run{
		Session:  session,
		OpenedAt: now,
		statusAt: map[types.UID]time.Time{},
	}
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

// Sessions is the number of runs.
func (r *Registry) Sessions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// Close ends all runs, so that the process can exit. The load pods continue and keep the intervals
// that were not acknowledged.
func (r *Registry) Close() {
	r.Retain(nil)
}

// Retain closes and removes every run whose test is not in keep.
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

// Drop closes and removes a test's run. The load pods are not affected.
func (r *Registry) Drop(id types.UID) {
	r.mu.Lock()
	run := r.byID[id]
	delete(r.byID, id)
	r.mu.Unlock()
	if run != nil && run.Session != nil {
		run.Session.Close()
	}
}

// Begin marks the load as started or resumed, once a load pod has its start instant: from then on
// its record can be read.
func (r *Run) Begin() {
	r.begun.Store(true)
}

// Read calls f with the record; it returns false where there is none.
func (r *Run) Read(f func(*merged.Series)) bool {
	if !r.Begun() {
		return false
	}
	r.Session.Read(f)
	return true
}

// Finished reports whether every load pod has ended and its whole record was collected.
func (r *Run) Finished() bool {
	return r.Begun() && r.Session.Finished()
}

// Elapsed returns the time since the start of the load, on the clock of the run; false before the
// start.
func (r *Run) Elapsed() (time.Duration, bool) {
	if !r.Begun() {
		return 0, false
	}
	return r.Session.Elapsed()
}

// At converts an instant of this process's wall clock to the time since the start of the load; see
// collect.Session. It returns false before the start.
func (r *Run) At(wall time.Time) (at, uncertainty time.Duration, ok bool) {
	if !r.Begun() {
		return 0, 0, false
	}
	return r.Session.At(wall)
}

// Keep keeps a part of the record at full resolution; see collect.Session.
func (r *Run) Keep(id string, from, to time.Duration) {
	if r.Begun() {
		r.Session.Keep(id, from, to)
	}
}

// Begun reports whether the record can be read.
func (r *Run) Begun() bool {
	return r != nil && r.begun.Load()
}

// BegunAt reports whether the load begins, or has begun, at an instant: a load pod has it. One that
// is stored may be older, as no pod had received that.
func (r *Run) BegunAt(start time.Time) bool {
	if !r.Begun() {
		return false
	}
	at, started := r.Session.Started()
	return started && at.Round(0).Sub(start.Round(0)).Abs() < time.Millisecond
}

// statusEvery is the least time between two writes of figures that change all the time.
const statusEvery = 2 * time.Second

// Due reports whether an object's figures that change all the time are to be written now, and
// records that they are. Without a run they always are.
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

// claimFor is how long a fault has exclusive use of a load from when it begins to record its
// targets: by then others observe the record.
const claimFor = 5 * time.Second

// Taken reports whether another fault has claimed a load, except for those that this one acts
// beside.
func (r *Registry) Taken(run *Run, now time.Time, fault types.UID, beside ...types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return run != nil && run.taken(now, fault, beside)
}

// Claim permits one fault at a time to record its targets on a load: two that waited for the same
// steady load would measure each other's effect. The claims of those that it acts beside do not
// count: they have recorded theirs.
func (r *Registry) Claim(run *Run, now time.Time, fault types.UID, beside ...types.UID) bool {
	if run == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if run.taken(now, fault, beside) {
		return false
	}
	run.claimedBy, run.claimedAt = fault, now
	return true
}

func (r *Run) taken(now time.Time, fault types.UID, beside []types.UID) bool {
	return r.claimedBy != fault && !slices.Contains(beside, r.claimedBy) &&
		now.Sub(r.claimedAt) < claimFor
}
