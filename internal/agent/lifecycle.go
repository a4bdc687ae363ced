package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// process is the state of one agent: it prepares, waits for the start, runs the load, and serves
// its record until it is released.
type process struct {
	cfg      Config
	instance string

	ended    chan struct{} // closed when there are no further intervals
	released chan struct{} // closed by the release
	cleaned  chan struct{} // closed when the keys of the load are removed; nil before that begins

	mu         sync.Mutex
	state      State
	reason     string
	message    string
	startAt    int64
	startedAt  int64
	start      chan time.Time // buffered for the only start
	stopped    bool           // the load was aborted
	stopLoad   context.CancelFunc
	endLoad    context.CancelFunc // the same without the verification; nil while the load does not run
	outbox     outbox
	ledger     *record.Ledger
	guarantees *record.Guarantees
	news       chan struct{} // closed and replaced when the record grows or the state changes
}

func newProcess(cfg Config) *process {
	return &process{
		cfg:      cfg,
		instance: rand.Text(),
		ended:    make(chan struct{}),
		released: make(chan struct{}),
		state:    Preparing,
		start:    make(chan time.Time, 1),
		outbox:   outbox{limit: cfg.MaxBuffered},
		news:     make(chan struct{}),
	}
}

// work prepares and runs the load. It returns when the load has ended; ctx ends it early.
func (p *process) work(ctx context.Context) {
	loadCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.stopLoad = cancel
	if p.stopped {
		cancel()
	}
	p.mu.Unlock()
	defer close(p.ended)

	err := p.runSafely(loadCtx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped && (err == nil || errors.Is(err, context.Canceled)):
		p.state, p.message = Finished, "stopped"
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
		p.state = Failed
		p.reason = ReasonTerminated
		p.message = "the pod was terminated before its load ended"
	case err != nil:
		p.state, p.reason, p.message = Failed, reasonOf(err), messageOf(err)
	default:
		p.state, p.message = Finished, ""
	}
	p.notify()
	p.cfg.Logger.Info("load ended", "state", p.state, "reason", p.reason, "message", p.message,
		"intervals", p.outbox.last)
}

// runSafely prepares the load once the network works, and runs it; a panic becomes an error.
func (p *process) runSafely(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.cfg.Logger.Error("the load panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := p.cfg.Sidecar.await(ctx, p.progress); err != nil {
		return err
	}
	if err := p.cfg.Runner.Prepare(ctx, p.progress); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	p.state, p.message = Ready, ""
	p.notify()
	p.mu.Unlock()
	p.cfg.Logger.Info("ready")

	select {
	case <-ctx.Done():
		return ctx.Err()
	case at := <-p.start:
		alarm := time.AfterFunc(time.Until(at), p.markStarted)
		defer alarm.Stop()
		if err := p.run(ctx, at); err != nil {
			return err
		}
		p.judge()
		p.verify(ctx)
		return nil
	}
}

// run runs the load until it ends, or is told to.
func (p *process) run(ctx context.Context, at time.Time) error {
	loadCtx, end := context.WithCancel(ctx)
	defer end()
	p.mu.Lock()
	p.endLoad = end
	p.mu.Unlock()
	err := p.cfg.Runner.Run(loadCtx, at, p.sink)
	if ctx.Err() == nil && loadCtx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// judge keeps how often was false what applications count on.
func (p *process) judge() {
	if g, ok := p.cfg.Runner.(guarantor); ok {
		found := g.Guarantees()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.guarantees = found
	}
}

// verify reads the ledger back. A failure does not affect the figures of the load; the result
// contains the reason.
func (p *process) verify(ctx context.Context) {
	v, ok := p.cfg.Runner.(verifier)
	if !ok || p.cfg.Plan.Verify == nil || ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	p.state, p.message = Verifying, ""
	p.notify()
	p.mu.Unlock()
	p.cfg.Logger.Info("the load has ended, reading its ledger back")
	ctx, cancel := context.WithTimeout(ctx, p.cfg.VerifyLimit)
	defer cancel()
	result, err := v.Verify(ctx, p.progress)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		result = &record.Ledger{
			Unread: fmt.Sprintf("reading it back took longer than %v", p.cfg.VerifyLimit),
		}
	case err != nil && ctx.Err() != nil:
		result = &record.Ledger{Unread: "it was stopped before all of it was read"}
	case err != nil:
		result = &record.Ledger{Unread: err.Error()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger = result
}

// markStarted records when this process woke up at T: the start of the load, for runners that do
// not report it.
func (p *process) markStarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Running && p.startedAt == 0 {
		p.startedAt = p.now()
	}
}

func (p *process) progress(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Preparing || p.state == Verifying {
		p.message = message
	}
}

func (p *process) sink(interval *record.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.outbox.append(interval) {
		p.cfg.Logger.Error("interval out of order was ignored", "index", interval.Index, "last",
			p.outbox.last)
		return
	}
	p.notify()
}

// errConflict is why a request conflicts with the agent's state.
type errConflict string

func (e errConflict) Error() string {
	return string(e)
}

// setStart sets the start instant.
func (p *process) setStart(request StartRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case request.Instance != "" && request.Instance != p.instance:
		return errConflict("the request is for another process: the pod has restarted")
	case p.startAt != 0 && p.startAt == request.At:
		return nil
	case p.startAt != 0:
		return errConflict(fmt.Sprintf("already started at %d", p.startAt))
	case p.state != Ready:
		return errConflict("the state is " + string(p.state) + ", not Ready")
	case request.At <= p.now():
		return errConflict("the start instant has passed")
	}
	p.startAt = request.At
	p.state = Running
	p.start <- p.cfg.Epoch.Add(time.Duration(request.At))
	p.notify()
	p.cfg.Logger.Info("start instant set", "in", time.Duration(request.At-p.now()))
	return nil
}

// notify wakes the requests that wait for a change. The caller holds mu.
func (p *process) notify() {
	close(p.news)
	p.news = make(chan struct{})
}

// step changes the rate of a load that searches.
func (p *process) step(request StepRequest) error {
	p.mu.Lock()
	state := p.state
	other := request.Instance != "" && request.Instance != p.instance
	p.mu.Unlock()
	s, ok := p.cfg.Runner.(stepper)
	switch {
	case other:
		return errConflict("the request is for another process: the pod has restarted")
	case request.Rate == 0 && (state == Verifying || state.Ended()):
		return nil
	case !ok || state != Running:
		return errConflict("the state is " + string(state) + ", not Running")
	}
	err := s.Step(time.Duration(request.At), request.Rate)
	if err != nil {
		return errConflict(err.Error())
	}
	p.cfg.Logger.Info("changing the rate", "at", time.Duration(request.At), "rate", request.Rate)
	return nil
}

// stop ends the load immediately. The record is kept. With verify a load that runs is not aborted:
// what follows it is not ended.
func (p *process) stop(verify bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state.Ended(), verify && p.state == Verifying:
		return
	case verify && p.state == Running && p.endLoad != nil:
		p.endLoad()
		return
	}
	p.stopped = true
	if p.stopLoad != nil {
		p.stopLoad()
	}
}

// release allows the process to exit.
func (p *process) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.Ended() {
		return errConflict("the load has not ended: the state is " + string(p.state))
	}
	select {
	case <-p.released:
	default:
		close(p.released)
	}
	return nil
}

func (p *process) status() Status {
	server := p.cfg.Runner.Server()
	p.mu.Lock()
	defer p.mu.Unlock()
	startedAt := p.startedAt
	if s, ok := p.cfg.Runner.(starter); ok {
		startedAt = 0
		if at := s.StartedAt(); !at.IsZero() {
			startedAt = int64(at.Sub(p.cfg.Epoch))
		}
	}
	now, wall := p.clocks()
	status := Status{
		Run:       p.cfg.Plan.Run,
		Pod:       p.cfg.Pod,
		Instance:  p.instance,
		State:     p.state,
		Reason:    p.reason,
		Message:   p.message,
		Now:       now,
		Wall:      wall,
		StartAt:   p.startAt,
		StartedAt: startedAt,
		LastSeq:   p.outbox.last,
		Lost:      p.outbox.lost,
		Server:    server,
	}
	w, ok := p.cfg.Runner.(waiter)
	if ok && p.state == Preparing {
		if awaited := w.Waiting(); awaited != nil {
			status.Reason, status.Message = string(awaited.Reason), awaited.Message
		}
	}
	if n, ok := p.cfg.Runner.(noter); ok {
		status.Notes = n.Notes()
	}
	if l, ok := p.cfg.Runner.(layouter); ok {
		status.Layout = layoutOf(l.Layout())
	}
	if p.state.Ended() {
		status.Ledger, status.Guarantees = p.ledger, p.guarantees
	}
	return status
}

// now returns the time on the pod's clock.
func (p *process) now() int64 {
	return int64(p.cfg.Now().Sub(p.cfg.Epoch))
}

// clocks returns the time on the pod's clock and on the wall clock.
func (p *process) clocks() (now, wall int64) {
	at := p.cfg.Now()
	return int64(at.Sub(p.cfg.Epoch)), at.UnixNano()
}

// failure returns why the agent failed, nil if it did not.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Failed {
		return nil
	}
	return &plan.Error{Reason: plan.Reason(p.reason), Message: p.message}
}

func reasonOf(err error) string {
	e, ok := errors.AsType[*plan.Error](err)
	if ok && e.Reason != "" {
		return string(e.Reason)
	}
	return ReasonOther
}

func messageOf(err error) string {
	e, ok := errors.AsType[*plan.Error](err)
	if ok && e.Message != "" {
		return e.Message
	}
	return err.Error()
}
