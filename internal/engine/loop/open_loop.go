package loop

import (
	"math"

	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// openLoop is the demand of arrivals that are scheduled in advance: every loops-th arrival of the
// pod belongs to this loop.
type openLoop struct {
	loop          *Loop
	pacer         *pace.Pacer
	number, loops int64
	next          int64 // number of the next arrival among the pod's
	due           int64 // when it is due
	near          *pace.Chunk
}

// maxQueued bounds the arrivals that a loop has taken from the schedule and cannot send yet. Those
// behind it wait in the schedule, whatever server they go to: of several servers one that hangs
// must not keep the others from being asked, so that there are more of maxQueuedOfSeveral, of 120
// bytes each.
const (
	maxQueued          = 16 << 10
	maxQueuedOfSeveral = 128 << 10
)

// mayQueue reports whether the loop may take another arrival from the schedule.
func (l *Loop) mayQueue() bool {
	if len(l.pools) > 1 {
		return l.queued < maxQueuedOfSeveral
	}
	return l.queued < maxQueued
}

func newOpenLoop(l *Loop, number, loops int64) *openLoop {
	d := &openLoop{
		loop:   l,
		pacer:  l.run.Pacer.Load(),
		number: number,
		loops:  loops,
		next:   number,
	}
	d.due = d.pacer.DueNear(&d.near, d.next)
	return d
}

func (d *openLoop) issue(now int64) int64 {
	l := d.loop
	if p := l.run.Pacer.Load(); p != d.pacer { // the rate was changed by Runner.Step
		d.pacer, d.due = p, p.DueNear(&d.near, d.next)
	}
	forgone := d.pacer.DiscardBefore(now)
	for d.due <= now {
		late := d.due + l.run.Timeout
		switch {
		case late < now:
			l.stripe.PartialAt(late).Dropped(l.run.OpOf(d.next))
		case d.due < forgone:
			l.stripe.PartialAt(now).Dropped(l.run.OpOf(d.next))
		case !l.mayQueue() || l.closing():
			return late // or when a request ends, which wakes the loop
		default:
			ledgerWrite := l.Book != nil && l.run.IsLedgerWrite(l.run.Arrival(d.next))
			if !ledgerWrite || !l.enqueueLedger(d.number, d.due, nil) { // the book may be full
				l.enqueue(l.run.UnledgeredOp(d.next), d.number, d.due, nil)
			}
		}
		d.next += d.loops
		d.due = d.pacer.DueNear(&d.near, d.next)
	}
	if d.due == math.MaxInt64 && !d.over(now) {
		return l.run.Length // a step may still add arrivals
	}
	return d.due
}

func (d *openLoop) ended(*request, int64) {}

func (d *openLoop) over(now int64) bool {
	return d.due == math.MaxInt64 && !d.loop.run.MayStep(now)
}

// New creates loop number i of loops, with a number of connections to the target's addresses. depth
// returns how many requests may be in flight on connection i of the pod.
func New(s *load.State, i, loops, conns int64, depth func(i int64) int) *Loop {
	p := s.Plan
	l := &Loop{
		run:    s,
		stripe: s.Recorder.Stripes[i],
		gaps:   gaps.NewLogs(s.Thresholds, false),
		settings: settings{
			connsPerPool: conns,
			depth:        depth,
			first:        i,
			stride:       loops,
			multiplexed:  p.Client.Mode == plan.Multiplexed,
			maxAge:       int64(p.Client.MaxAge),
			addedLatency: int64(p.Client.AddedLatency),
			scanEvery:    min(max(s.Timeout/20, scanShortest), scanLongest),
		},
		destinations: destinations{layout: route.StandaloneMap},
		traffic:      traffic{flying: make([]int32, len(s.Operations))},
		buffers:      buffers{in: make([]byte, readBuffer)},
	}
	l.draws(false)
	if s.Pacer.Load() != nil {
		l.demand = newOpenLoop(l, i, loops)
	} else {
		l.demand = newClosedLoop(l, i, loops)
	}
	l.ensurePools(0)
	return l
}

// draws has the loop draw its requests from a source of its own.
func (l *Loop) draws(cluster bool) {
	p := l.run.Plan
	number, of := workload.Numbered(l.first, l.stride, l.run.Pod, p.Pods)
	l.source = l.run.Redis.Source(number, of, cluster)
	l.follower, _ = l.source.(workload.Follower)
	l.actor, _ = l.source.(workload.Actor)
}

// LayOut creates the connections to each shard of a deployment. It must be called before the loop
// is served.
func (l *Loop) LayOut(m *topology.Map) {
	l.draws(m.Kind == topology.KindCluster)
	from := l.run.Plan.Client.ReadFrom
	l.readsReplicas = from == plan.ReadReplica || from == plan.ReadAny
	l.layout = m
	for shard := range m.Shards {
		l.ensurePools(shard)
	}
}

// Connections returns the loop's connections, to be established before the loop is served.
func (l *Loop) Connections() []*Conn {
	return l.conns
}

// Place is where the connection leads.
func (c *Conn) Place() route.Place {
	return c.pool.place
}

// Lock keeps the loop from waking up until unlock is called.
func (l *Loop) Lock() (unlock func()) {
	l.stripe.Mu.Lock() // the loop holds it while it is awake
	return l.stripe.Mu.Unlock
}

// GapSource returns the source of the loop's gaps. With sharded it also has those of each shard.
func (l *Loop) GapSource(sharded bool) gaps.Source {
	l.gaps.Sharded = sharded
	return gaps.Source{
		Lock:    &l.stripe.Mu,
		Logs:    &l.gaps,
		Settled: l.settled,
	}
}

// pool is one loop's connections to one place, and the requests queued for them.
type pool struct {
	place   route.Place
	conns   []*Conn
	free    connRing
	waiting queue
	flying  int // requests in flight
	up      int // connections that are established
}

// pump sends the queued requests over the free connections. The connection that has been free for
// the longest time goes first, so that all are used equally.
func (p *pool) pump() {
	for p.waiting.count > 0 {
		c := p.free.pop()
		if c == nil {
			return
		}
		c.free = false
		switch {
		case c.renewPending:
			c.release()
		case c.up:
			c.send()
		}
	}
}

// dialled reports whether requests wait for a connection that is being dialled: to a server that is
// down, they wait in vain.
func (p *pool) dialled() bool {
	return p.waiting.count > 0 && p.up < len(p.conns)
}

// connRing is a FIFO queue of connections.
type connRing struct {
	ring        []*Conn
	head, count int
}

func (r *connRing) push(c *Conn) {
	if r.count == len(r.ring) {
		ring := make([]*Conn, max(4, 2*len(r.ring)))
		for i := range r.count {
			ring[i] = r.ring[(r.head+i)&(len(r.ring)-1)]
		}
		r.ring, r.head = ring, 0
	}
	r.ring[(r.head+r.count)&(len(r.ring)-1)] = c
	r.count++
}

// pop returns nil if the queue is empty.
func (r *connRing) pop() *Conn {
	if r.count == 0 {
		return nil
	}
	c := r.ring[r.head]
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.count--
	return c
}
