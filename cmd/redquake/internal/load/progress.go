package load

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// progress writes the progress of a run to w: on a terminal in one line that is overwritten,
// elsewhere in a line every few seconds.
type progress struct {
	w        io.Writer
	terminal bool
	plan     *plan.Plan
	every    time.Duration
	next     time.Duration // when the next line is due
	shown    bool          // the terminal's line is not empty
	errors   uint64
	requests uint64
}

// Intervals of the progress, in time of the run.
const (
	everyOnTerminal = 500 * time.Millisecond
	everyElsewhere  = 5 * time.Second
)

func newProgress(w io.Writer, plan *plan.Plan) *progress {
	p := &progress{
		w:     w,
		plan:  plan,
		every: everyElsewhere,
	}
	f, ok := w.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		p.terminal, p.every = true, everyOnTerminal
	}
	p.next = p.every
	return p
}

// note writes a sentence that is not overwritten.
func (p *progress) note(text string) {
	p.done()
	fmt.Fprintln(p.w, text)
}

// interval counts the requests of the latest interval, and writes a line if one is due.
func (p *progress) interval(iv *record.Interval, series *merged.Series) {
	for _, op := range iv.Ops {
		p.errors += op.Fail + op.Unknown + op.Dropped
		p.requests += op.OK + op.Fail + op.Unknown + op.Dropped
	}
	elapsed := time.Duration(iv.Index+1) * p.plan.Interval
	if elapsed < p.next {
		return
	}
	p.next = elapsed - elapsed%p.every + p.every
	p.show(p.line(elapsed, series))
}

// show writes a sentence that the next one overwrites on a terminal.
func (p *progress) show(text string) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", text)
		p.shown = true
		return
	}
	fmt.Fprintln(p.w, text)
}

// line returns a line such as "12.5s  41%  3012.4/s  p99 0.41ms  errors 12 (0.033%)": rate and
// quantile over the last second.
func (p *progress) line(elapsed time.Duration, series *merged.Series) string {
	from := max(0, elapsed-time.Second)
	var ok uint64
	var latency histogram.Distribution
	first, end := series.Window(from, elapsed)
	for i := first; i < end; i++ {
		for _, op := range series.At(i).Ops {
			ok += op.OK - op.Drained
			latency.Add(op.Latency)
		}
	}
	parts := []string{format.Duration(elapsed)}
	if p.plan.Shape.Search == nil { // the duration of a search is unknown
		parts = append(parts, format.Share(p.share(elapsed)))
	}
	switch shape := p.plan.Shape; {
	case elapsed <= shape.RampUp:
		parts = append(parts, "ramping up")
	case elapsed <= shape.MeasuredFrom():
		parts = append(parts, "warming up")
	}
	parts = append(parts, format.Rate(float64(ok)/(elapsed-from).Seconds())+"/s")
	if latency.Count() > 0 {
		parts = append(parts, "p99 "+format.Duration(latency.Quantile(0.99)))
	}
	errors := fmt.Sprintf("errors %d", p.errors)
	if p.errors > 0 {
		errors += " (" + format.Share(float64(p.errors)/float64(p.requests)) + ")"
	}
	return strings.Join(append(parts, errors), "  ")
}

// share is the elapsed part of the run, by time or by requests, whichever is larger.
func (p *progress) share(elapsed time.Duration) float64 {
	share := 0.0
	if length := p.plan.Shape.Length(); length > 0 {
		share = float64(elapsed) / float64(length)
	}
	if requests := p.plan.Shape.Requests; requests > 0 {
		share = max(share, float64(p.requests)/float64(requests))
	}
	return min(share, 1)
}

// done clears the terminal's line before further output.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

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
