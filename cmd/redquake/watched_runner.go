package main

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/record"
)

// watchedRunner runs a load and records the resource use of this process.
type watchedRunner struct{ *engine.Runner }

// Run is engine.Runner.Run with a reading of this process in every interval.
func (r watchedRunner) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	return r.Runner.Run(ctx, start, r.Watch(bottleneck.NewSelf().Read, sink))
}
