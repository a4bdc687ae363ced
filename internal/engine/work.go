package engine

import (
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// work is what one pod has to send, and when. Its methods are safe for concurrent use.
type work struct {
	plan       *plan.Plan
	pod        int
	length     int64 // nanoseconds; 0 = until the requests are done
	workload   workload.Workload
	operations []plan.Operation // of the workload, and last the ledger's writes if there are any

	turns   *plan.Turns           // nil if operations are mixed
	users   plan.Schedule         // closed loop: how many are active, over all pods
	pacer   atomic.Pointer[pacer] // open loop, else nil; a step replaces it
	budget  budget                // closed loop
	aborted atomic.Bool
	ended   atomic.Bool // a step has ended the load
}

// opOf returns the operation of this pod's arrival i according to the plan: once the ledger is full, ledger writes are sent as other operations.
func (w *work) opOf(i int64) int {
	if w.isLedgerWrite(w.arrival(i)) {
		return w.ledgerOp()
	}
	return w.unledgeredOp(i)
}

// unledgeredOp is opOf for an arrival that is no ledger write.
func (w *work) unledgeredOp(i int64) int {
	if w.turns != nil {
		return w.turns.At(time.Duration(w.pacer.Load().due(i)), i, w.requests())
	}
	return w.workload.OperationOf(w.arrival(i))
}

// pick returns the operation of the next request of a closed loop, at the instant now, after it was claimed from the budget. source chooses among
// mixed operations.
func (w *work) pick(source interface{ Pick() int }, now int64) int {
	if w.turns == nil {
		return source.Pick()
	}
	total := w.requests()
	return w.turns.At(time.Duration(now), total-w.budget.left.Load()-1, total)
}

// requests is the number of requests of this pod, if that ends the load; otherwise 0.
func (w *work) requests() int64 {
	return int64(share(w.plan.Shape.Requests, uint64(w.plan.Pods), uint64(w.pod)))
}

// arrival returns the number over all pods of this pod's arrival i.
func (w *work) arrival(i int64) int64 { return i*int64(w.plan.Pods) + int64(w.pod) }

// isLedgerWrite reports whether request i of a sequence is a ledger write: the writes are evenly spread and match the configured share.
func (w *work) isLedgerWrite(i int64) bool {
	if w.plan.Verify == nil {
		return false
	}
	share := w.plan.Verify.Share
	return int64(float64(i+1)*share) > int64(float64(i)*share)
}

// ledgerOp returns the index of the ledger writes among the operations: the last one.
func (w *work) ledgerOp() int { return len(w.operations) - 1 }

// mayStep reports whether the load searches for a rate and a further step may follow.
func (w *work) mayStep(now int64) bool {
	return w.plan.Shape.Search != nil && !w.ended.Load() && !w.over(now)
}

// over reports whether no new request may be sent at the instant at.
func (w *work) over(at int64) bool { return w.aborted.Load() || w.length > 0 && at >= w.length }

// countDue sets the number of requests that were due in [from, to): from the pacer, or in a closed loop the number sent.
func (w *work) countDue(iv *record.Interval, from, to int64) {
	pacer := w.pacer.Load()
	if pacer == nil {
		for i := range iv.Ops {
			iv.Ops[i].Due = iv.Ops[i].Sent
		}
		return
	}
	first, end := pacer.arrivals(from), pacer.arrivals(to)
	if len(iv.Ops) == 1 {
		iv.Ops[0].Due = uint64(end - first)
		return
	}
	for i := first; i < end; i++ {
		iv.Ops[w.opOf(i)].Due++
	}
}

// plannedPace is the time between this pod's requests according to the plan at the instant at, in nanoseconds: the inverse of the rate, or the think
// time divided by the number of users.
func (w *work) plannedPace(at int64) int64 {
	if p := w.pacer.Load(); p != nil {
		return p.meanGap(at)
	}
	if mine := w.users.Level(at) / float64(w.plan.Pods); mine > 0 {
		return int64(float64(w.plan.Shape.ThinkTime) / mine)
	}
	return 0
}
