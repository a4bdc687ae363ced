// Package pace tells what one pod has to send, and when: the due times of arrivals and of users'
// turns, the operation of each, and when the load is over. It depends on the plan alone. All
// instants are nanoseconds since the start of the run.
package pace

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Work is what one pod has to send, and when. Its methods are safe for concurrent use.
type Work struct {
	Plan       *plan.Plan
	Pod        int
	Length     int64 // nanoseconds; 0 = until the requests are done
	Workload   workload.Workload
	Operations []plan.Operation // of the workload, and last the ledger's writes if there are any

	Turns   *plan.Turns           // nil if operations are mixed
	Users   plan.Schedule         // closed loop: how many are active, over all pods
	Pacer   atomic.Pointer[Pacer] // open loop, else nil; a step replaces it
	Budget  budget                // closed loop
	Aborted atomic.Bool
	Ended   atomic.Bool // a step has ended the load
}

// OpOf returns the operation of this pod's arrival i according to the plan: once the ledger is
// full, ledger writes are sent as other operations.
func (w *Work) OpOf(i int64) int {
	if w.IsLedgerWrite(w.Arrival(i)) {
		return w.LedgerOp()
	}
	return w.UnledgeredOp(i)
}

// UnledgeredOp is opOf for an arrival that is no ledger write.
func (w *Work) UnledgeredOp(i int64) int {
	if w.Turns != nil {
		return w.Turns.At(time.Duration(w.Pacer.Load().Due(i)), i, w.Requests())
	}
	return w.Workload.OperationOf(w.Arrival(i))
}

// Pick returns the operation of the next request of a closed loop, at the instant now, after it was
// claimed from the budget. source chooses among mixed operations.
func (w *Work) Pick(source interface{ Pick() int }, now int64) int {
	if w.Turns == nil {
		return source.Pick()
	}
	total := w.Requests()
	return w.Turns.At(time.Duration(now), total-w.Budget.Left.Load()-1, total)
}

// Requests is the number of requests of this pod, if that ends the load; otherwise 0.
func (w *Work) Requests() int64 {
	return int64(Share(w.Plan.Shape.Requests, uint64(w.Plan.Pods), uint64(w.Pod)))
}

// Arrival returns the number over all pods of this pod's arrival i.
func (w *Work) Arrival(i int64) int64 {
	return i*int64(w.Plan.Pods) + int64(w.Pod)
}

// IsLedgerWrite reports whether request i of a sequence is a ledger write: the writes are evenly
// spread and match the configured share.
func (w *Work) IsLedgerWrite(i int64) bool {
	if w.Plan.Verify == nil {
		return false
	}
	share := w.Plan.Verify.Share
	return int64(float64(i+1)*share) > int64(float64(i)*share)
}

// LedgerOp returns the index of the ledger writes among the operations: the last one.
func (w *Work) LedgerOp() int {
	return len(w.Operations) - 1
}

// MayStep reports whether the load searches for a rate and a further step may follow.
func (w *Work) MayStep(now int64) bool {
	return w.Plan.Shape.Search != nil && !w.Ended.Load() && !w.Over(now)
}

// Over reports whether no new request may be sent at the instant at.
func (w *Work) Over(at int64) bool {
	return w.Aborted.Load() || w.Length > 0 && at >= w.Length
}

// CountDue sets the number of requests that were due in [from, to): from the pacer, or in a closed
// loop the number sent.
func (w *Work) CountDue(iv *record.Interval, from, to int64) {
	pacer := w.Pacer.Load()
	if pacer == nil {
		for i := range iv.Ops {
			iv.Ops[i].Due = iv.Ops[i].Sent
		}
		return
	}
	if len(iv.Ops) == 1 {
		iv.Ops[0].Due = uint64(pacer.Arrivals(to) - pacer.Arrivals(from))
		return
	}
	for i := range pacer.Between(from, to) {
		iv.Ops[w.OpOf(i)].Due++
	}
}

// PlannedPace is the time between this pod's requests according to the plan at the instant at, in
// nanoseconds: the inverse of the rate, or the think time divided by the number of users.
func (w *Work) PlannedPace(at int64) int64 {
	if p := w.Pacer.Load(); p != nil {
		return p.meanGap(at)
	}
	mine := w.Users.Level(at) / float64(w.Plan.Pods)
	if mine > 0 {
		return int64(float64(w.Plan.Shape.ThinkTime) / mine)
	}
	return 0
}

// Users are virtual users. A user sends one batch per turn; after the batch's last reply it pauses
// for the think time, then its next turn is due.
type Users struct {
	level plan.Schedule // how many are active, over all pods
	flat  int64         // instant after which the level is constant
	Think int64
	Idle  Turns // ordered by due time
}

// Turn is one virtual user and the state of its current turn.
type Turn struct {
	User int64 // number over all pods: the user is active while the level is above it
	Due  int64 // of the next turn
	Left int   // requests of the current turn without an outcome
	// when the next turn may begin: users that wait for something say so
	NotBefore int64
}

// NewUsers returns part number of parts of the pod's users. Users are assigned round-robin, first
// to pods, then to parts, so that a ramp-up is spread evenly.
func NewUsers(w *Work, number, parts int64) *Users {
	p := w.Plan
	u := &Users{level: plan.NewSchedule(p.Shape), Think: int64(p.Shape.ThinkTime)}
	u.flat = u.level.FlatFrom()
	mine := Share(int64(math.Ceil(u.level.Peak())), int64(p.Pods), int64(w.Pod))
	for i := number; i < mine; i += parts {
		u.Schedule(&Turn{User: i*int64(p.Pods) + int64(w.Pod)}, 0)
	}
	return u
}

// Schedule makes the user's next turn due at the instant at, or when the user is next active,
// whichever is later.
func (u *Users) Schedule(t *Turn, at int64) {
	if t.Due = u.level.WhenAbove(float64(t.User), at); t.Due != math.MaxInt64 {
		u.Idle.push(t)
	}
}

// Active reports whether the user is part of the load at the instant at.
func (u *Users) Active(t *Turn, at int64) bool {
	if at >= u.flat {
		return u.level.Final() > float64(t.User)
	}
	return u.level.WhenAbove(float64(t.User), at) <= at
}

// Turns is a binary min-heap of users, ordered by due time.
type Turns []*Turn

func (h *Turns) push(t *Turn) {
	*h = append(*h, t)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].Due <= q[i].Due {
			break
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

// Pop removes and returns the user whose turn is due first; there must be one.
func (h *Turns) Pop() *Turn {
	q := *h
	first, end := q[0], len(q)-1
	q[0] = q[end]
	q[end] = nil
	q = q[:end]
	*h = q
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < end && q[left].Due < q[least].Due {
			least = left
		}
		if right < end && q[right].Due < q[least].Due {
			least = right
		}
		if least == i {
			return first
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
