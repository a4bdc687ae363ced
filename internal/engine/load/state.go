// Package load holds what the parts of a load share: its loops or callers, and its probes.
package load

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

// State is the state that the loops, callers and probes of one run share.
type State struct {
	clock.Clock
	socket.System
	pace.Work

	NoRecording bool // only count how many requests ended: see WithoutRecording

	Timeout    int64          // requestTimeout, nanoseconds
	Sharded    bool           // there are several shards
	Redis      workload.Redis // the same workload if its requests are Redis commands, otherwise nil
	Routes     route.Routes
	Recorder   *interval.Recorder
	Parts      gaps.Parts
	Thresholds *gaps.Thresholds // of the gap logs of the loops or callers
	Samples    Samples          // of error messages

	Connections atomic.Int64 // currently established
}
