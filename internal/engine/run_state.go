package engine

import (
	"sync/atomic"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
)

// runState is the state that the loops, callers and probes of one run share.
type runState struct {
	clock.Clock
	socket.System
	pace.Work

	noRecording bool // only count how many requests ended: see WithoutRecording
	laidOut     bool // the layout is given: see WithLayout

	timeout    int64           // requestTimeout, nanoseconds
	sharded    bool            // there are several shards
	audit      *ledger.Audit   // nil if no ledger is kept
	sampler    *ledger.Sampler // nil if nothing is sampled during the load
	checker    *ledger.Checker // nil if no ledger is kept
	redis      workload.Redis  // the same workload if its requests are Redis commands, otherwise nil
	routes     route.Routes
	rec        *interval.Recorder
	parts      gaps.Parts
	thresholds *gaps.Thresholds // of the gap logs of the loops or callers
	gaps       gaps.Merge
	samples    samples // of error messages

	// scanEvery is how often the loops check for requests that have exceeded requestTimeout, nanoseconds.
	scanEvery   int64
	connections atomic.Int64 // currently established
}
