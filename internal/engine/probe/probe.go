// Package probe sends a slow, steady stream of requests beside a load, over connections of its own:
// it sees when a server first serves a new client.
package probe

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// maxGreetings is how many dials may wait for the first reply of a server that has accepted them:
// one is enough to notice its recovery, and a hundred per second would fill its backlog while it
// hangs.
const maxGreetings = 8

// WholeTarget is the number of the probe of a target with one shard.
const WholeTarget = -1

// Prober sends a low-rate open-loop stream of requests in parallel with the load. Each arrival uses
// an idle connection or, if there is none, dials a new one, even while older dials hang: the
// instant at which the server first serves a new client is measured within one arrival interval.
// A Loop serves it.
type Prober struct {
	run *load.State
	// of its shard when it was created, under which it is recorded; or wholeTarget
	number      int
	slot        uint16 // of its key
	last        int    // the shard that last served the slot
	pacer       *pace.Pacer
	source      workload.Source
	key         string
	gaps        *gaps.Shared
	maxInFlight int64 // concurrent arrivals

	next int64 // number of the next arrival
	dials
	conns
	*common            // with the other probes of the loop
	first   *dial.Line // by Establish
}

// dials are those for arrivals that found no idle connection.
type dials struct {
	waiting int64 // arrivals for which a connection is being dialled
	// those that the server has accepted and not replied to; replaced when the primary changes
	greeting *atomic.Int64
	greeted  string // the primary that greeting counts for; "" = the target's addresses
}

// conns are a prober's connections.
type conns struct {
	idle    []*probeConn // the one that was used last goes first
	flying  []*probeConn // with a request in flight, in the order of their deadlines
	renewed int64        // when one was last closed because its server refused writes
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
		dials:       dials{greeting: new(atomic.Int64)},
	}, nil
}

// Key is the key that the probe of this pod writes.
func (p *Prober) Key() string {
	return p.key
}

// issue sends the arrivals that are due, and returns when it must be called again.
func (p *Prober) issue() int64 {
	for {
		due := p.pacer.Due(p.next)
		now := p.run.Now()
		if due > now {
			return due
		}
		p.next++
		// dials that hang at one server must not delay dials to another
		if primary := p.primary(); primary != p.greeted {
			p.greeted, p.greeting = primary, new(atomic.Int64)
		}
		if p.inFlight() >= p.maxInFlight || p.greeting.Load() >= maxGreetings ||
			now-due > p.run.Timeout {
			p.settle(now, func(s *interval.Partial) { s.Dropped(0) })
			continue
		}
		p.start(&arrival{
			due:     due,
			began:   now,
			request: p.Request(),
		})
	}
}

func (p *Prober) inFlight() int64 {
	return p.waiting + int64(len(p.flying))
}

// Request encodes the request of the next arrival.
func (p *Prober) Request() []byte {
	r := workload.Request{User: int64(p.run.Pod)}
	p.source.Draw(0, &r)
	out, _ := p.source.Append(nil, &r)
	return out
}

// shard is the shard that serves the probe's key. While none does, it is the last one.
func (p *Prober) shard() int {
	if shard, ok := p.run.Routes.Current().ShardOf(p.slot); ok {
		p.last = shard
	}
	return p.last
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
// unless there is one. It must be called before Run.
func (p *Prober) Establish(ctx context.Context) error {
	if p.first != nil {
		return nil
	}
	line, err := p.dialer().Dial(ctx, 0, nil)
	if err == nil {
		p.first = &line
	}
	return err
}

// Close closes a connection that was established and not used.
func (p *Prober) Close() {
	if p.first != nil {
		_ = p.first.Close()
		p.first = nil
	}
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
