package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
)

// Pauses between two attempts of a step that failed.
const (
	pauseFirst = time.Millisecond
	pauseLast  = 500 * time.Millisecond
)

// WithPatience sets how long each step of Prepare is repeated while it fails for a reason that can
// pass: no answer yet, data being loaded, an election, a name that does not resolve yet. The
// default is three dial timeouts, at least 5 s; math.MaxInt64 waits until ctx ends.
func WithPatience(d time.Duration) Option {
	return func(r *Runner) { r.patience = d }
}

// Waiting returns what Prepare waits for, nil if for nothing. It is safe for use during Prepare.
func (r *Runner) Waiting() *plan.Error {
	return r.waiting.Load()
}

// patiently repeats a step of the preparation until it succeeds, fails for a reason that does not
// pass by waiting, or has failed for as long as the Runner's patience.
func (r *Runner) patiently(
	ctx context.Context, progress func(string), step func(ctx context.Context) error,
) error {
	return r.patientlyOn(ctx, r.newWait(progress), step)
}

// patientlyOn is patiently with a wait that others note successes on, too.
func (r *Runner) patientlyOn(
	ctx context.Context, w *wait, step func(ctx context.Context) error,
) error {
	defer w.over()
	pause := pauseFirst
	for {
		err := step(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.failed(err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(dial.Jitter(pause)):
			pause = min(2*pause, pauseLast)
		}
	}
}

// wait follows the failures of one step. Its methods are safe for concurrent use.
type wait struct {
	runner   *Runner
	progress func(string)
	mu       sync.Mutex
	since    time.Time // when it began, or last succeeded in part
	last     string    // what progress was told
}

func (r *Runner) newWait(progress func(string)) *wait {
	return &wait{
		runner:   r,
		progress: progress,
		since:    time.Now(),
	}
}

// failed notes that an attempt failed. It returns the error to give up with, nil if the step is to
// be tried again.
func (w *wait) failed(err error) error {
	failed, ok := errors.AsType[*plan.Error](err)
	if !ok || !failed.Passes {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.runner.patience
	if time.Since(w.since) >= limit {
		given := *failed
		if limit > 0 {
			given.Message += fmt.Sprintf("; waited %s for that to pass", limit)
		}
		return &given
	}
	w.runner.waiting.Store(failed)
	if failed.Message != w.last {
		w.last = failed.Message
		w.progress(w.upTo() + failed.Message)
	}
	return nil
}

// upTo says how long it may take.
func (w *wait) upTo() string {
	if w.runner.patience == math.MaxInt64 {
		return "waiting: "
	}
	return fmt.Sprintf("waiting up to %s: ", w.runner.patience)
}

// over notes that an attempt succeeds, be it in part, or that there will be no other.
func (w *wait) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
	w.runner.waiting.Store(nil)
}

// advanced notes that an attempt succeeds in part, which is told: the next failure is told again.
func (w *wait) advanced() {
	w.over()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = ""
}
