package engine

import (
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
)

// run is what the loops of one run share.
type run struct {
	plan     *plan.Plan
	pod      int
	mute     bool      // nothing is recorded but how many requests ended
	start    time.Time // T, with a monotonic reading; set before the loops begin
	portable bool      // the connections have no file descriptors: see WithDialer
	length   int64     // nanoseconds; 0 = until the requests are done

	timeout    int64 // requestTimeout, nanoseconds
	dialer     *dialer
	shards     *shardLog       // nil where there is one shard
	audit      *ledger.Audit   // nil where no ledger is kept
	sampler    *ledger.Sampler // nil where nothing is sampled beside the load
	workload   workload.Workload
	redis      workload.Redis // the same where the requests are commands to Redis, else nil
	callers    *callers       // instead of loops
	operations []plan.Operation
	routes     routes
	rec        *recorder
	gaps       *gapLog

	users   plan.Schedule         // closed loop: how many are active, over all pods
	pacer   atomic.Pointer[pacer] // open loop, else nil; Step replaces it
	budget  budget                // closed loop
	loops   []*loop
	aborted atomic.Bool
	ended   atomic.Bool // a step has ended the load
	// scanEvery is how often the loops look for requests that are too old, nanoseconds.
	scanEvery   int64
	connections atomic.Int64 // established now
}

// now is the time since T in nanoseconds.
func (r *run) now() int64 { return int64(time.Since(r.start)) }

// at is an instant as nanoseconds since T.
func (r *run) at(t time.Time) int64 { return int64(t.Sub(r.start)) }

// over says that nothing new may be sent at the instant at.
func (r *run) over(at int64) bool { return r.aborted.Load() || r.length > 0 && at >= r.length }

// opOf is the operation of this pod's arrival i.
func (r *run) opOf(i int64) int {
	arrival := i*int64(r.plan.Pods) + int64(r.pod)
	if r.isLedgerWrite(arrival) {
		return r.ledgerOp()
	}
	return r.workload.OperationOf(arrival)
}
