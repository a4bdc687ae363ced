// Package probe sends a slow, steady stream of requests beside a load, over connections of its own:
// it sees when a server first serves a new client.
package probe

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// idleProbes is how many idle connections a probe keeps for the next arrivals.
const idleProbes = 4

// maxGreetings is how many dials may wait for the first reply of a server that has accepted them:
// one is enough to notice its recovery, and a hundred per second would fill its backlog while it
// hangs.
const maxGreetings = 8

// WholeTarget is the number of the probe of a target with one shard.
const WholeTarget = -1

// Prober sends a low-rate open-loop stream of requests in parallel with the load. Each arrival uses
// an idle connection or, if there is none, dials a new one, even while older dials hang: the
// instant at which the server first serves a new client is measured within one arrival interval.
type Prober struct {
	run *load.State
	// of its shard when it was created, under which it is recorded; or wholeTarget
	number      int
	slot        uint16       // of its key
	last        atomic.Int64 // the shard that last served the slot
	pacer       *pace.Pacer
	source      workload.Source
	key         string
	gaps        *gaps.Shared
	maxInFlight int64 // concurrent arrivals
	waiter      clock.Waiter

	inFlight atomic.Int64
	// dials that the server has accepted and not replied to; replaced by loop when the primary changes
	greeting *atomic.Int64
	greeted  string // the primary that greeting counts for; "" = the target's addresses
	mu       sync.Mutex
	idle     []*probeConn
	renewed  int64 // when a connection was last closed because its server refused writes
}

type probeConn struct {
	dial.Line
	scan resp.Scanner
	in   [1024]byte
}

// New creates the probe of a shard, or of the only one: wholeTarget. tag is appended to the
// command's key and determines its slot: the probe follows the slot if another shard takes it over.
func New(n *load.State, shard int, tag string) (*Prober, error) {
	p := n.Plan
	words, key := slices.Clone(p.Probe.Words), ""
	if len(words) > 1 {
		words[1] += tag
		key = strings.ReplaceAll(words[1], "{user}", strconv.Itoa(n.Pod))
	}
	commands, err := workload.New(&plan.Workload{
		Commands: []plan.Command{{
			Name:   "probe",
			Weight: 1,
			Words:  words,
		}},
		Keyspace: p.Workload.Keyspace,
		Values:   p.Workload.Values,
	})
	if err != nil {
		return nil, err
	}
	q := *p // the arrivals of the probe are those of a plan with the probe's rate and pods
	q.Pods = p.ProbePods()
	q.Shape = plan.Shape{Rate: p.Probe.Rate, Duration: p.Shape.Length()}
	rate := p.Probe.Rate / float64(q.Pods)
	threshold := int64(2e9 / rate)
	return &Prober{
		run:         n,
		number:      shard,
		key:         key,
		slot:        topology.SlotOf([]byte(tag)),
		pacer:       pace.NewPacer(&q, n.Pod),
		source:      commands.Source(int64(n.Pod), int64(p.Pods), false),
		gaps:        gaps.NewShared(gaps.NewThresholds(1, 0, threshold), false),
		maxInFlight: int64(p.Client.RequestTimeout.Seconds()*rate) + 8,
		greeting:    new(atomic.Int64),
	}, nil
}

// Key is the key that the probe of this pod writes.
func (p *Prober) Key() string {
	return p.key
}

// Prepare makes the timer of Run.
func (p *Prober) Prepare() (err error) {
	p.waiter, err = p.run.NewWaiter()
	return err
}

// Run sends each arrival in a new goroutine, until none is left or probing ends. It returns once
// none is in flight; the end of ctx cancels those.
func (p *Prober) Run(ctx, probing context.Context) {
	stop := context.AfterFunc(probing, p.waiter.Interrupt)
	defer stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := int64(0); i < p.pacer.Total; i++ {
		due := p.pacer.Due(i)
		if !p.waiter.Wait(time.Duration(due-p.run.Now())) || probing.Err() != nil {
			return
		}
		// dials that hang at one server must not delay dials to another
		if primary := p.primary(); primary != p.greeted {
			p.greeted, p.greeting = primary, new(atomic.Int64)
		}
		if p.inFlight.Load() >= p.maxInFlight || p.greeting.Load() >= maxGreetings ||
			p.run.Now()-due > p.run.Timeout {
			p.settle(p.run.Now(), func(s *interval.Partial) { s.Dropped(0) })
			continue
		}
		request, greeting := p.Request(), p.greeting
		p.inFlight.Add(1)
		sending.Go(func() {
			defer p.inFlight.Add(-1)
			p.send(ctx, due, request, greeting)
		})
	}
}

// Request encodes the request of the next arrival.
func (p *Prober) Request() []byte {
	r := workload.Request{User: int64(p.run.Pod)}
	p.source.Draw(0, &r)
	out, _ := p.source.Append(nil, &r)
	return out
}

// send sends the request of one arrival and records its outcome.
func (p *Prober) send(ctx context.Context, due int64, request []byte, greeting *atomic.Int64) {
	c, began := p.takeIdle(), p.run.Now()
	p.gaps.Begin(1, began)
	if c == nil {
		var err error
		if c, err = p.dial(ctx, due, greeting); err != nil {
			p.unsent(ctx, began, due, err)
			return
		}
	}
	sent := p.run.Now()
	p.settle(sent, func(s *interval.Partial) { s.Sent(0, len(request)) })
	e := p.ask(ctx, c, due, request, greeting)
	c, reply, err := e.conn, e.reply, e.err
	if c == nil {
		p.unsent(ctx, began, due, err)
		return
	}
	read := p.run.Now()
	lo, at := p.arrived(c, sent, read)
	outcome := gaps.Receipt{
		Hi:     at,
		Lo:     lo,
		Surely: lo,
		Since:  began,
		Sent:   began,
	}
	renew := false
	switch {
	case err != nil:
		at = read
		p.noteFailure(ctx, began, at, dial.LossClass(err))
		p.discard(c)
		p.settle(at, func(s *interval.Partial) {
			s.Unknown(0, at, dial.LossClass(err), at-due,
				0)
			p.failed(s)
		})
		return
	case at-sent > p.run.Timeout:
		outcome.Failed = 1
		p.settle(at, func(s *interval.Partial) {
			s.Unknown(0, at, record.ClassTimeout, at-due,
				reply.Bytes)
			p.failed(s)
		})
	case reply.Kind == resp.Error:
		outcome.Failed = 1
		p.settle(at, func(s *interval.Partial) {
			s.Fail(0, at, reply.Class, at-due,
				reply.Bytes)
			p.failed(s)
		})
		renew = p.onErrorReply(c, reply.Class, at)
	default:
		outcome.OK = 1
		p.settle(at, func(s *interval.Partial) {
			s.OK(0, at, at-due, at-sent, uint64(reply.Bytes),
				1)
			p.succeeded(s)
		})
	}
	p.gaps.End(1, outcome, read)
	if renew {
		p.discard(c)
	} else {
		p.putIdle(c)
	}
}

// arrived returns between which instants a reply arrived that was read at the instant read.
func (p *Prober) arrived(c *probeConn, sent, read int64) (lo, hi int64) {
	offset := clock.WallOffset{}
	offset.ReadOffset(&p.run.Clock, read)
	at, exact := offset.Arrived(&p.run.Clock, socket.LastStamp(socket.StamperOf(c.Conn)), sent, read)
	if !exact {
		return sent, read
	}
	return max(at, sent), max(at, sent)
}

// unsent records an arrival for which no connection could be established since the instant began.
func (p *Prober) unsent(ctx context.Context, began, due int64, err error) {
	at, waited := p.run.Now(), dial.ClassOf(err)
	timeout, ok := errors.AsType[net.Error](err)
	if ok && timeout.Timeout() {
		waited = record.ClassTimeout // a request that waits for a connection is in flight, too
	}
	p.noteFailure(ctx, began, at, waited)
	p.settle(at, func(s *interval.Partial) {
		if ctx.Err() != nil {
			s.Dropped(0) // the run was aborted
		} else {
			s.Fail(0, at, dial.ClassOf(err), at-due, 0)
			p.failed(s)
		}
	})
}

// noteFailure notes for the gap log that a request failed without a reply.
func (p *Prober) noteFailure(ctx context.Context, began, at int64, class record.Class) {
	switch {
	case ctx.Err() != nil: // the run was aborted
		p.gaps.End(1, gaps.Receipt{}, at)
	case class == record.ClassTimeout: // it was in flight all the time
		p.gaps.End(1, gaps.Receipt{
			Hi:     at,
			Lo:     at,
			Sent:   began,
			Failed: 1,
		}, at)
	default:
		p.gaps.Broken(1, 0, began, at)
	}
}

func (p *Prober) succeeded(s *interval.Partial) {
	if p.number != WholeTarget {
		s.Shard(p.number).OK++
	}
}

func (p *Prober) failed(s *interval.Partial) {
	if p.number != WholeTarget {
		s.Shard(p.number).Errors++
	}
}

func (p *Prober) settle(at int64, write func(*interval.Partial)) {
	s, _ := p.run.Recorder.Probe.Lock(at)
	write(s)
	p.run.Recorder.Probe.Unlock()
}

// dial establishes a connection within the requestTimeout of the arrival.
func (p *Prober) dial(ctx context.Context, due int64, greeting *atomic.Int64) (*probeConn, error) {
	return p.dialWith(ctx, p.dialer(), due, greeting)
}

func (p *Prober) dialWith(
	ctx context.Context, d *dial.Dialer, due int64, greeting *atomic.Int64,
) (*probeConn, error) {
	ctx, cancel := context.WithDeadline(ctx, p.run.Start.Add(time.Duration(due+p.run.Timeout)))
	defer cancel()
	c, err := d.Dial(ctx, 0, greeting)
	if err != nil {
		return nil, err
	}
	return &probeConn{Line: c}, nil
}

func (p *Prober) dialer() *dial.Dialer {
	return p.run.Routes.DialerTo(route.Place{Shard: p.shard()}, 0)
}

// onErrorReply handles an error reply and reports whether the connection must be replaced: it leads
// to a server that was demoted and did not close its clients' connections. The topology is
// refreshed.
func (p *Prober) onErrorReply(c *probeConn, class record.Class, at int64) bool {
	routes := &p.run.Routes
	switch class {
	case record.ClassMoved:
		to := route.ParseRedirection(c.scan.Message(), c.Address)
		if to != nil && to.Kind == route.Moved && routes.Tracker != nil {
			routes.Tracker.Moved(to.Slot, to.To)
		}
	case record.ClassReadOnly:
		routes.Refresh("the probe received READONLY")
	default:
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at-p.renewed < route.RenewEvery && !p.leadsElsewhere(c) {
		return false
	}
	p.renewed = at
	return true
}

func (p *Prober) exchange(ctx context.Context, c *probeConn, request []byte) (resp.Reply, error) {
	err := c.SetDeadline(time.Now().Add(time.Duration(p.run.Timeout)))
	if err != nil {
		return resp.Reply{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(request); err != nil {
		return resp.Reply{}, err
	}
	for {
		n, err := p.read(ctx, c)
		if err != nil {
			return resp.Reply{}, err
		}
		used, r, done, err := c.scan.Next(c.in[:n])
		switch {
		case err != nil:
			return resp.Reply{}, err
		case done && used < n:
			return resp.Reply{}, dial.ErrUnexpectedReply
		case done:
			return r, nil
		}
	}
}

// read reads what has arrived. If this process did not run when the deadline passed, there may be a
// reply all the same.
func (p *Prober) read(ctx context.Context, c *probeConn) (int, error) {
	deadline := time.Now().Add(time.Duration(p.run.Timeout))
	n, err := c.Read(c.in[:])
	late := time.Since(deadline)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) &&
		late > time.Duration(clock.LateWake) && ctx.Err() == nil {
		err := c.SetDeadline(time.Now().Add(lastLook))
		if err != nil {
			return 0, err
		}
		return c.Read(c.in[:])
	}
	return n, err
}

// lastLook is for how long a probe looks once more for a reply.
const lastLook = time.Millisecond

func (p *Prober) takeIdle() *probeConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !p.leadsElsewhere(c) {
			return c
		}
		_ = c.Close()
	}
	return nil
}

// leadsElsewhere reports whether a connection leads to a server other than the shard's current
// primary.
func (p *Prober) leadsElsewhere(c *probeConn) bool {
	primary := p.primary()
	return primary != "" && primary != c.Address
}

// shard is the shard that serves the probe's key. While none does, it is the last one.
func (p *Prober) shard() int {
	if shard, ok := p.run.Routes.Current().ShardOf(p.slot); ok {
		p.last.Store(int64(shard))
	}
	return int(p.last.Load())
}

// primary returns that shard's current primary; "" if it has none, or if the target's addresses are
// used.
func (p *Prober) primary() string {
	m, shard := p.run.Routes.Current(), p.shard()
	if shard >= len(m.Shards) {
		return ""
	}
	return m.Shards[shard].Primary
}

// Establish establishes a connection for the first arrival, so that it does not have to dial,
// unless there is one.
func (p *Prober) Establish(ctx context.Context) error {
	p.mu.Lock()
	there := len(p.idle) > 0
	p.mu.Unlock()
	if there {
		return nil
	}
	c, err := p.dialer().Dial(ctx, 0, nil)
	if err == nil {
		p.putIdle(&probeConn{Line: c})
	}
	return err
}

func (p *Prober) putIdle(c *probeConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= idleProbes {
		_ = c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

// discard closes a broken connection, and the idle ones, which lead to the same server. The next
// arrival dials a new one.
func (p *Prober) discard(c *probeConn) {
	_ = c.Close()
	p.Close()
}

// Close closes the idle connections.
func (p *Prober) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}

// Complete adds the probe's figures of the interval [from, to).
func (p *Prober) Complete(iv *record.Interval, from, to int64, last bool) {
	iv.Probe.Due += uint64(p.pacer.Arrivals(to) - p.pacer.Arrivals(from))
	until := to
	if last {
		until = clock.Never
	}
	logs := gaps.Merge{p.gaps.Source()}
	gaps := logs.OfLoad(until, to, last)
	if p.number == WholeTarget {
		iv.ProbeGaps = gaps
		return
	}
	for _, g := range gaps {
		iv.ProbeShardGaps = append(iv.ProbeShardGaps, record.ShardGap{Shard: p.number, Gap: g})
	}
}
