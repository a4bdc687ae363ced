package engine

import (
	"sync/atomic"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
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

	timeout    int64          // requestTimeout, nanoseconds
	sharded    bool           // there are several shards
	redis      workload.Redis // the same workload if its requests are Redis commands, otherwise nil
	routes     route.Routes
	rec        *interval.Recorder
	parts      gaps.Parts
	thresholds *gaps.Thresholds // of the gap logs of the loops or callers
	samples    samples          // of error messages

	connections atomic.Int64 // currently established
}
