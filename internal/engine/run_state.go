package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
)

// run is what the loops of one run share.
type runState struct {
	plan        *plan.Plan
	pod         int
	noRecording bool      // nothing is recorded but how many requests ended
	start       time.Time // T, with a monotonic reading; set before the loops begin
	portable    bool      // the connections have no file descriptors: see WithDialer
	length      int64     // nanoseconds; 0 = until the requests are done

	timeout    int64 // requestTimeout, nanoseconds
	dialer     *dialer
	shards     *shardLog       // nil where there is one shard
	audit      *ledger.Audit   // nil where no ledger is kept
	sampler    *ledger.Sampler // nil where nothing is sampled beside the load
	workload   workload.Workload
	redis      workload.Redis // the same where the requests are commands to Redis, else nil
	operations []plan.Operation
	routes     routes
	rec        *recorder
	gaps       *gapLog

	users   plan.Schedule         // closed loop: how many are active, over all pods
	pacer   atomic.Pointer[pacer] // open loop, else nil; Step replaces it
	budget  budget                // closed loop
	aborted atomic.Bool
	ended   atomic.Bool // a step has ended the load
	// scanEvery is how often the loops look for requests that are too old, nanoseconds.
	scanEvery   int64
	connections atomic.Int64 // established now
}

// now is the time since T in nanoseconds.
func (r *runState) now() int64 { return int64(time.Since(r.start)) }

// at is an instant as nanoseconds since T.
func (r *runState) at(t time.Time) int64 { return int64(t.Sub(r.start)) }

// opOf is the operation of this pod's arrival i.
func (r *runState) opOf(i int64) int {
	arrival := i*int64(r.plan.Pods) + int64(r.pod)
	if r.isLedgerWrite(arrival) {
		return r.ledgerOp()
	}
	return r.workload.OperationOf(arrival)
}

// budget is how many requests are left to this pod.
type budget struct{ left atomic.Int64 }

// claim takes up to n requests.
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

// isLedgerWrite says whether request i of a row of requests is a ledger write: evenly spread, so many that the share comes out.
func (r *runState) isLedgerWrite(i int64) bool {
	if r.plan.Verify == nil {
		return false
	}
	share := r.plan.Verify.Share
	return int64(float64(i+1)*share) > int64(float64(i)*share)
}

// ledgerOp is the place of the ledger writes among the operations: the last.
func (r *runState) ledgerOp() int { return len(r.operations) - 1 }

// mayStep says that the load searches, and a further step may come.
func (r *runState) mayStep(now int64) bool {
	return r.plan.Shape.Search != nil && !r.ended.Load() && !r.over(now)
}

// over says that nothing new may be sent at the instant at.
func (r *runState) over(at int64) bool { return r.aborted.Load() || r.length > 0 && at >= r.length }

// newPoller is the poller of the loops: the platform's own, or the portable one where the connections have no file descriptors.
func (r *runState) newPoller() (poller, error) {
	if r.portable {
		return newPortablePoller(), nil
	}
	return newPoller()
}

// newWaiter is the platform's own, or the portable one where the poller is portable, too.
func (r *runState) newWaiter() (waiter, error) {
	if r.portable {
		return newPortableWaiter(), nil
	}
	return newWaiter()
}

// dialBudget is how long Prepare tries to reach Redis: three attempts, at least 5 s.
func dialBudget(c plan.Client) time.Duration { return max(3*c.DialTimeout, 5*time.Second) }
