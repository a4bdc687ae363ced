package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
)

// runState is the state that the loops, callers and probes of one run share.
type runState struct {
	clock.Clock
	socket.System

	plan        *plan.Plan
	pod         int
	noRecording bool  // only count how many requests ended: see WithoutRecording
	laidOut     bool  // the layout is given: see WithLayout
	length      int64 // nanoseconds; 0 = until the requests are done

	timeout    int64           // requestTimeout, nanoseconds
	sharded    bool            // there are several shards
	audit      *ledger.Audit   // nil if no ledger is kept
	sampler    *ledger.Sampler // nil if nothing is sampled during the load
	checker    *ledger.Checker // nil if no ledger is kept
	workload   workload.Workload
	redis      workload.Redis // the same workload if its requests are Redis commands, otherwise nil
	operations []plan.Operation
	routes     route.Routes
	rec        *interval.Recorder
	parts      gaps.Parts
	thresholds *gaps.Thresholds // of the gap logs of the loops or callers
	gaps       gaps.Merge
	samples    samples // of error messages

	turns   *plan.Turns           // nil if operations are mixed
	users   plan.Schedule         // closed loop: how many are active, over all pods
	pacer   atomic.Pointer[pacer] // open loop, else nil; Step replaces it
	budget  budget                // closed loop
	aborted atomic.Bool
	ended   atomic.Bool // a step has ended the load
	// scanEvery is how often the loops check for requests that have exceeded requestTimeout, nanoseconds.
	scanEvery   int64
	connections atomic.Int64 // currently established
}

// opOf returns the operation of this pod's arrival i according to the plan: once the ledger is full, ledger writes are sent as other operations.
func (r *runState) opOf(i int64) int {
	if r.isLedgerWrite(r.arrival(i)) {
		return r.ledgerOp()
	}
	return r.unledgeredOp(i)
}

// unledgeredOp is opOf for an arrival that is no ledger write.
func (r *runState) unledgeredOp(i int64) int {
	if r.turns != nil {
		return r.turns.At(time.Duration(r.pacer.Load().due(i)), i, r.requests())
	}
	return r.workload.OperationOf(r.arrival(i))
}

// pick returns the operation of the next request of a closed loop, at the instant now, after it was claimed from the budget. source chooses among
// mixed operations.
func (r *runState) pick(source interface{ Pick() int }, now int64) int {
	if r.turns == nil {
		return source.Pick()
	}
	total := r.requests()
	return r.turns.At(time.Duration(now), total-r.budget.left.Load()-1, total)
}

// requests is the number of requests of this pod, if that ends the load; otherwise 0.
func (r *runState) requests() int64 {
	return int64(share(r.plan.Shape.Requests, uint64(r.plan.Pods), uint64(r.pod)))
}

// arrival returns the number over all pods of this pod's arrival i.
func (r *runState) arrival(i int64) int64 { return i*int64(r.plan.Pods) + int64(r.pod) }

// budget is how many requests this pod may still send.
type budget struct{ left atomic.Int64 }

// claim takes up to n requests from the budget and returns how many it took.
func (b *budget) claim(n int) int {
	for {
		left := b.left.Load()
		if left == math.MaxInt64 {
			return n
		}
		k := min(int64(n), left)
		if k <= 0 || b.left.CompareAndSwap(left, left-k) {
			return int(max(k, 0))
		}
	}
}

// isLedgerWrite reports whether request i of a sequence is a ledger write: the writes are evenly spread and match the configured share.
func (r *runState) isLedgerWrite(i int64) bool {
	if r.plan.Verify == nil {
		return false
	}
	share := r.plan.Verify.Share
	return int64(float64(i+1)*share) > int64(float64(i)*share)
}

// ledgerOp returns the index of the ledger writes among the operations: the last one.
func (r *runState) ledgerOp() int { return len(r.operations) - 1 }

// mayStep reports whether the load searches for a rate and a further step may follow.
func (r *runState) mayStep(now int64) bool {
	return r.plan.Shape.Search != nil && !r.ended.Load() && !r.over(now)
}

// over reports whether no new request may be sent at the instant at.
func (r *runState) over(at int64) bool { return r.aborted.Load() || r.length > 0 && at >= r.length }
