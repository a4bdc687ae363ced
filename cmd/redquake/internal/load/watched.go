package load

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/record"
)

// watchedRunner runs a load and records what resources the process uses that it runs in, as self
// reads them.
type watchedRunner struct {
	*engine.Runner
	self engine.Self
}

// watched returns a runner that records the resource use of this process.
func watched(runner *engine.Runner) watchedRunner {
	return watchedRunner{Runner: runner, self: bottleneck.NewSelf().Read}
}

// Run is engine.Runner.Run with a reading of the process in every interval.
func (r watchedRunner) Run(
	ctx context.Context, start time.Time, sink func(*record.Interval),
) error {
	return r.Runner.Run(ctx, start, r.Watch(r.self, sink))
}
