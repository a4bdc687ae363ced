// Package callers sends the load of workloads that perform whole operations, with a goroutine for
// each operation at a time.
package callers

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Callers sends the load of workloads that perform whole operations themselves (a database behind a
// cache, an HTTP API, a client library): one goroutine per concurrent operation, as in an application. It
// costs more per request than the event loops.
type Callers struct {
	State *load.State
	Count int64 // goroutines
	// Timeout bounds an operation; 0 = the client that performs it sets its own timeouts.
	Timeout time.Duration
	Ledger  *Ledger // nil if there is none
	gaps    *gaps.Shared
	heart   clock.Heartbeat
	make    func(number, of int64) workload.Caller // set by Open
	free    func() error                           // set by Open
	library *library                               // nil with a remote workload
}

// Open creates the client that performs the operations. kind is the deployment's topology. After an
// error it may be called again.
func (c *Callers) Open(ctx context.Context, kind plan.Topology) error {
	if c.State.Redis != nil {
		return c.openLibrary(ctx, kind)
	}
	options := workload.RemoteOptions{
		Connections: int(c.Count),
		Timeout:     dial.Budget(c.State.Plan.Client),
	}
	var cache redis.UniversalClient
	a := c.State.Plan.Workload.CacheAside
	if a != nil && a.Mode == plan.ThroughCache {
		var err error
		if cache, err = newCache(c.State, kind); err != nil {
			return &plan.Error{
				Reason:  plan.AuthenticationFailed,
				Message: err.Error(),
				Err:     err,
			}
		}
		options.Cache = cache
	}
	remote, err := workload.NewRemote(&c.State.Plan.Workload, options)
	if err != nil {
		return &plan.Error{
			Reason:  plan.BackendUnreachable,
			Message: err.Error(),
			Err:     err,
		}
	}
	closing := func() error {
		if cache != nil {
			_ = cache.Close()
		}
		return remote.Close()
	}
	if err := remote.Prepare(ctx); err != nil {
		_ = closing()
		return &plan.Error{
			Reason:  plan.BackendUnreachable,
			Message: err.Error(),
			Err:     err,
			Passes:  backendPasses(err),
		}
	}
	c.free, c.make = closing, remote.Caller
	return nil
}

// Close closes the client that open created, if there is one.
func (c *Callers) Close() {
	if c.free != nil {
		_ = c.free()
	}
}

// Source is the source of the callers' gaps, once they have been started.
func (c *Callers) Source() gaps.Source {
	source := c.gaps.Source()
	if c.library != nil {
		source.Settled = c.library.settled
	}
	return source
}

// Failed is closed when the client has failed, which ends the load; nil if that cannot happen.
func (c *Callers) Failed() <-chan struct{} {
	if c.library == nil {
		return nil
	}
	return c.library.session.Ended()
}

// Err is why the client has failed; nil if it has not.
func (c *Callers) Err() error {
	if c.library == nil {
		return nil
	}
	return c.library.err()
}

// backendPasses reports whether a backend that cannot be used may be used later.
func backendPasses(err error) bool {
	if errors.Is(err, workload.ErrRefused) {
		return false
	}
	reply, ok := errors.AsType[redis.Error](err) // of the cache
	return !ok || dial.ReasonOfReply(reply.Error()) == ""
}

// Start runs the goroutines in group; they return when the load is over.
func (c *Callers) Start(ctx context.Context, group *sync.WaitGroup) error {
	c.gaps = gaps.NewShared(c.State.Thresholds, c.State.Sharded)
	go c.heart.Run(ctx, c.State.Now, c.noteStall)
	var due chan arrival
	var dealt chan struct{}
	if c.State.Pacer.Load() != nil {
		due, dealt = make(chan arrival), make(chan struct{})
		wake, err := c.State.NewWaiter()
		if err != nil {
			return err
		}
		group.Go(func() {
			defer wake.Close()
			defer close(due)
			defer close(dealt)
			stop := context.AfterFunc(ctx, wake.Interrupt)
			defer stop()
			c.deal(ctx, wake, due)
		})
	}
	operating := ctx
	if c.library != nil {
		c.library.begin()
		operating = c.library.until(ctx, dealt)
	}
	for i := range c.Count {
		number, of := workload.Numbered(i, c.Count, c.State.Pod, c.State.Plan.Pods)
		one := &caller{
			run:     c.State,
			stripe:  c.State.Recorder.Stripes[int(i)%len(c.State.Recorder.Stripes)],
			caller:  c.make(number, of),
			tally:   make([]uint64, len(c.State.Plan.Tallies())),
			number:  i,
			timeout: c.Timeout,
			of:      c,
		}
		one.library, _ = one.caller.(*libraryCaller)
		group.Go(func() {
			if due != nil {
				one.serveArrivals(operating, due)
			} else {
				one.serveUsers(operating, pace.NewUsers(&c.State.Work, i, c.Count))
			}
		})
	}
	return nil
}

// noteStall records that the process did not run.
func (c *Callers) noteStall(stall record.Stall) {
	stripe := c.State.Recorder.Stripes[0]
	s, _ := stripe.Lock(stall.To)
	defer stripe.Unlock()
	s.Stalls = append(s.Stalls, stall)
}

// arrival is one scheduled request: its number and its due time.
type arrival struct{ number, due int64 }

// deal hands each arrival to an idle goroutine when it is due, and drops it once the timeout of an
// operation has passed.
func (c *Callers) deal(ctx context.Context, wake clock.Waiter, to chan<- arrival) {
	r := c.State
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for i := int64(0); ; i++ {
		a := arrival{i, c.await(ctx, wake, i)}
		if a.due == math.MaxInt64 {
			return
		}
		now := r.Now()
		if a.due < r.Pacer.Load().DiscardBefore(now) {
			c.drop(a, now)
			continue
		}
		late := a.due + int64(r.Plan.OperationTimeout())
		select { // usually a goroutine is idle
		case to <- a:
			continue
		default:
		}
		timer.Reset(time.Duration(late - r.Now()))
		select {
		case to <- a:
		case <-timer.C:
			c.drop(a, late)
		case <-ctx.Done():
			return
		}
	}
}

// drop counts an arrival for which no goroutine was idle in time.
func (c *Callers) drop(a arrival, at int64) {
	s, _ := c.State.Recorder.Stripes[0].Lock(at)
	s.Dropped(c.State.OpOf(a.number))
	c.State.Recorder.Stripes[0].Unlock()
}

// stepNotice is the longest delay after which a change of the rate takes effect while the next
// arrival is awaited.
const stepNotice = 100 * time.Millisecond

// await waits until arrival i is due and returns its due time; math.MaxInt64 if there is no such
// arrival or ctx has ended.
func (c *Callers) await(ctx context.Context, wake clock.Waiter, i int64) int64 {
	for {
		due := c.State.Pacer.Load().Due(i)
		left := time.Duration(due - c.State.Now())
		switch {
		case ctx.Err() != nil, due == math.MaxInt64 && !c.State.MayStep(c.State.Now()):
			return math.MaxInt64
		case left <= 0:
			return due
		case c.State.Plan.Shape.Search != nil:
			left = min(left, stepNotice)
		}
		if !wake.Wait(left) {
			return math.MaxInt64
		}
	}
}

// caller is the state of one goroutine of callers.
type caller struct {
	of      *Callers
	run     *load.State
	stripe  *interval.Stripe
	caller  workload.Caller
	library *libraryCaller // the same if it is that of a library, otherwise nil
	number  int64
	tally   []uint64
	timeout time.Duration // of an operation; 0 = none
}

func (c *caller) serveArrivals(ctx context.Context, due <-chan arrival) {
	for a := range due {
		c.call(ctx, c.opOf(a), c.number, a.due)
	}
}

// opOf is the operation of an arrival.
func (c *caller) opOf(a arrival) int {
	if l := c.of.Ledger; l != nil && c.run.IsLedgerWrite(c.run.Arrival(a.number)) {
		if c.library.write = l.next(a.due); c.library.write != nil {
			return c.run.LedgerOp()
		}
	}
	return c.run.UnledgeredOp(a.number)
}

// pick is the operation of a user's next request.
func (c *caller) pick(user, now int64) int {
	if l := c.of.Ledger; l != nil {
		if c.library.write = l.nextOfUsers(c.run, now); c.library.write != nil {
			return c.run.LedgerOp()
		}
	}
	if c.library != nil && c.library.actor != nil {
		return c.library.actor.Turn(user, now)
	}
	return c.run.Pick(c.caller, now)
}

// notBefore is when the next request of the last one's user may begin.
func (c *caller) notBefore() int64 {
	if c.library == nil {
		return 0
	}
	return c.library.next
}

func (c *caller) serveUsers(ctx context.Context, u *pace.Users) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for len(u.Idle) > 0 && ctx.Err() == nil {
		t := u.Idle.Pop()
		if wait := t.Due - c.run.Now(); wait > 0 {
			timer.Reset(time.Duration(wait))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		now := c.run.Now()
		if c.run.Over(now) {
			return
		}
		if !u.Active(t, now) {
			u.Schedule(t, now)
			continue
		}
		if c.run.Budget.Claim(1) == 0 {
			return
		}
		c.call(ctx, c.pick(t.User, now), t.User, -1)
		u.Schedule(t, max(c.run.Now()+u.Think, c.notBefore()))
	}
}

// call performs one operation and records it.
func (c *caller) call(ctx context.Context, op int, user, due int64) {
	sent := c.run.Now()
	parts := c.run.Parts.Of[op]
	c.of.gaps.Begin(parts, sent)
	within, cancel := ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		within, cancel = context.WithTimeout(ctx, c.timeout)
	}
	result := c.caller.Call(within, op, user, c.tally)
	cancel()
	read := c.run.Now()
	at := read
	if result.Done > 0 {
		sent, at = result.Sent, result.Done
	}
	s, _ := c.stripe.Lock(sent)
	s.Sent(op, result.BytesOut)
	if due >= 0 {
		s.Lag(sent - due)
	}
	c.stripe.Unlock()
	s, _ = c.stripe.Lock(at)
	defer c.stripe.Unlock()
	for i, n := range c.tally {
		s.Tallies[i] += n
	}
	clear(c.tally)
	service, waited := at-sent, at-sent
	if due >= 0 {
		waited = at - due
	}
	switch {
	case result.Outcome == workload.OK && due >= 0:
		s.OK(op, at, waited, service, uint64(result.BytesIn), 1)
	case result.Outcome == workload.OK:
		s.OK(op, at, service, -1, uint64(result.BytesIn), 1)
	case result.Outcome == workload.Fail:
		s.Fail(op, at, result.Class, waited, result.BytesIn)
	default:
		s.Unknown(op, at, result.Class, waited, result.BytesIn)
	}
	if result.Null && c.run.Operations[op].ReadOnly {
		s.Missed(op, 1)
	}
	c.noteGaps(parts, &result, c.noteShard(s, &result, at), sent, at, read)
	if c.library != nil {
		c.library.note()
		c.account(&result, at)
	}
}

// account records an outcome in the ledger, if there is one.
func (c *caller) account(result *workload.Result, at int64) {
	if l := c.of.Ledger; l != nil {
		l.account(c.library.write, result.Outcome, at)
		c.library.write = nil
	}
}

// noteGaps notes an outcome for the gap logs, which was read at the instant read.
func (c *caller) noteGaps(parts uint64, result *workload.Result, shard int, sent, at, read int64) {
	lo := min(max(sent, c.of.heart.Since()), at)
	if result.Done > 0 { // the application had it then, no sooner and no later
		lo = at
	}
	switch {
	case result.Outcome == workload.OK:
		c.of.gaps.End(parts, gaps.Receipt{
			Hi:     at,
			Lo:     lo,
			Surely: lo,
			OK:     parts,
			Since:  at,
			Shard:  shard,
		}, read)
	case result.Class == record.ClassTimeout || result.BytesIn > 0: // it was in flight all the time
		c.of.gaps.End(parts, gaps.Receipt{
			Hi:     at,
			Lo:     lo,
			Sent:   sent,
			Failed: parts,
			Shard:  shard,
		}, read)
	default:
		c.of.gaps.Broken(parts, shard, sent, read)
	}
}

// noteShard counts the outcome for the shard that serves the key now, and returns its number; -1
// for a request without a key, which is counted for no shard.
func (c *caller) noteShard(s *interval.Partial, result *workload.Result, at int64) int {
	if !c.run.Sharded || c.run.Redis == nil || result.Slot == workload.NoSlot {
		return -1
	}
	shard, ok := c.run.Routes.Current().ShardOf(result.Slot)
	switch {
	case !ok || shard >= record.MaxShards:
		return -1
	case result.Outcome == workload.OK:
		if at < s.End {
			s.Shard(shard).OK++
		}
	default:
		s.Shard(shard).Errors++
	}
	return shard
}
