package main

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/sample"
)

// watchedRunner runs a load and watches this process while it does.
type watchedRunner struct{ *load.Runner }

// Run is as load.Runner.Run; every interval holds a reading of this process.
func (r watchedRunner) Run(ctx context.Context, start time.Time, sink func(*sample.Interval)) error {
	return r.Runner.Run(ctx, start, r.Watch(bottleneck.NewSelf().Read, sink))
}
