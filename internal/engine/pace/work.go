// Package pace tells what one pod has to send, and when: the due times of arrivals and of users'
// turns, the operation of each, and when the load is over. It depends on the plan alone. All
// instants are nanoseconds since the start of the run.
package pace

import (
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
	first, end := pacer.Arrivals(from), pacer.Arrivals(to)
	if len(iv.Ops) == 1 {
		iv.Ops[0].Due = uint64(end - first)
		return
	}
	for i := first; i < end; i++ {
		iv.Ops[w.OpOf(i)].Due++
	}
}

// PlannedPace is the time between this pod's requests according to the plan at the instant at, in
// nanoseconds: the inverse of the rate, or the think time divided by the number of users.
func (w *Work) PlannedPace(at int64) int64 {
	if p := w.Pacer.Load(); p != nil {
		return p.meanGap(at)
	}
	if mine := w.Users.Level(at) / float64(w.Plan.Pods); mine > 0 {
		return int64(float64(w.Plan.Shape.ThinkTime) / mine)
	}
	return 0
}
