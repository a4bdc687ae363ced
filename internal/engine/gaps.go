package engine

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// gapFloor is the minimum length of a gap.
const gapFloor = int64(5 * time.Millisecond)

// gapLog records every period without a success that can have been longer than its threshold, as one client sees it: an event loop, or a probe.
// Instants are nanoseconds since the start. It has no lock.
type gapLog struct {
	threshold *atomic.Int64 // all clients of a pod share it: the merged gaps of a pod are complete above it
	last      int64         // the latest success; 0 before the first: the start
	surely    int64         // the latest instant at which a success up to last can have arrived at the earliest
	proof     proof         // since last
	ended     []record.Gap  // by time; not yet forgotten
	after     int64         // until then, shorter gaps may be a part of one that was longer than the threshold; see mayGoOn
	afterAll  int64         // in the log of the first client of a pod: the same of the gaps that all clients have
}

// receipt is one or several outcomes that were read together.
type receipt struct {
	hi     int64  // when they arrived, at the latest
	lo     int64  // when the first of them arrived, at the earliest
	surely int64  // when the last of them arrived, at the earliest
	ok     uint64 // the gap logs that have a success; see parts
	since  int64  // when the last request of the successes was sent; of a closed loop when it was answered
	flight int64  // since when a request of each of these logs was in flight on its connection; 0 = not known
	failed uint64 // the gap logs that have a failure
	sent   int64  // when the first failed request was sent
	shard  int
	// alive is when the server was last heard on the connection of a success before its request was sent, if the client did not send it at once; otherwise 0.
	// early is when the success could have arrived at the earliest, had the client sent it then, and asked is when it was sent: of several such requests, the
	// latest, the earliest and the latest.
	alive, early, asked int64
}

// success records successes. They may be reported out of order.
func (g *gapLog) success(a *receipt) {
	if a.hi <= g.last {
		g.late(a)
	} else {
		g.next(a)
	}
	g.prove(a)
}

// next records successes that arrived after all before.
func (g *gapLog) next(a *receipt) {
	if n := len(g.ended); n > 0 && a.lo < g.ended[n-1].To {
		g.sooner(a.lo)
	}
	switch threshold := g.threshold.Load(); { // it is known only that a success arrived until surely
	case a.hi-g.surely > threshold:
		g.ended = append(g.ended, g.gapTo(a))
		g.after = a.hi + threshold
	case a.hi-g.surely > gapFloor && g.last < g.after && g.proof.skipped+g.proof.away == 0:
		one := record.Gap{From: g.last, To: a.hi, MaybeBefore: g.last - g.surely, MaybeSooner: a.hi - a.lo}.Proven(max(a.since, g.last), a.hi)
		if mayGoOn(&one) {
			g.ended = append(g.ended, one)
		}
	}
	g.last, g.surely = a.hi, max(g.surely, a.surely)
	g.proof = proof{}
}

// prove adds what a success proves of gaps: a request in flight waited in vain.
func (g *gapLog) prove(a *receipt) {
	for i := len(g.ended) - 1; i >= 0 && a.flight > 0 && g.ended[i].To > a.flight; i-- {
		e := &g.ended[i]
		if from, to := max(a.flight, e.From), min(a.lo, e.To); to-from > e.To-e.From-e.UnprovenHead-e.UnprovenTail {
			*e = e.Proven(from, to)
		}
	}
}

// mayGoOn reports whether a gap that is no longer than the threshold tells, right behind a longer one, that the outage went on: replies that the network had held
// back arrive from a server that does not answer yet. Where requests are rare it is shorter than twice the time between them.
func mayGoOn(g *record.Gap) bool { return !g.Open && g.AtLeast(0) > gapFloor }

// gapTo is the gap that successes end. If the server was alive in it and could have answered early, either the outage was over by then, or a later one kept the
// request waiting: the longer proof counts. It could not while other requests failed.
func (g *gapLog) gapTo(a *receipt) record.Gap {
	from, to := g.proof.longest(a.hi)
	lo, early := a.lo, max(a.early, g.proof.failure)
	switch {
	case a.alive <= g.last: // nothing was heard of it in the gap
	case a.lo-a.asked <= min(to, early)-from:
		lo = min(lo, early)
	default:
		from, to = a.asked, a.hi
	}
	return record.Gap{From: g.last, To: a.hi, MaybeBefore: g.last - g.surely, MaybeSooner: a.hi - lo}.Proven(max(from, g.last), to)
}

// failure records that a request failed which had been in flight from one instant to the other.
func (g *gapLog) failure(from, to int64) {
	if from = max(from, g.last); from <= to {
		g.proof.failed(from, to, g.bridge())
	}
}

// bridge is the longest pause between two proofs that does not interrupt them: of clients that redial, or eight mean times of a log with few requests.
// With random arrivals one pause in e^8 is longer.
func (g *gapLog) bridge() int64 { return max(record.Bridge, 4*g.threshold.Load()) }

// wait notes that a request is in flight at an instant.
func (g *gapLog) wait(at int64) { g.proof.wait(at, g.bridge()) }

// refused notes that a connection was refused at an instant.
func (g *gapLog) refused(at int64) {
	g.proof.seen(at, at, g.bridge())
	g.proof.failure = max(g.proof.failure, at)
}

// sooner notes that a success which was read after a gap can have arrived in it.
func (g *gapLog) sooner(lo int64) {
	for i := range g.ended {
		if e := &g.ended[i]; lo < e.To {
			e.MaybeSooner = max(e.MaybeSooner, e.To-lo)
		}
	}
}

// late records successes that arrived before one that was reported earlier. They can divide a gap.
func (g *gapLog) late(a *receipt) {
	for i := 0; i < len(g.ended); i++ {
		e := g.ended[i]
		switch {
		case a.hi <= e.From:
			g.ended[i].MaybeBefore = min(e.MaybeBefore, max(0, e.From-a.surely))
		case a.hi >= e.To:
			g.ended[i].MaybeSooner = max(e.MaybeSooner, e.To-a.lo)
		default:
			before, after := e.Divide(a.lo, a.surely, a.hi)
			g.ended = slices.Replace(g.ended, i, i+1, before, after)
			i++
		}
	}
	g.surely = max(g.surely, a.surely)
	g.proof = proof{} // it seemed to be in flight since
}

// silence returns the gaps that have not been forgotten, and the period since the last success, which has no end.
func (g *gapLog) silence() []record.Gap {
	from, to := g.proof.longest(math.MaxInt64)
	open := record.Gap{From: g.last, To: math.MaxInt64, MaybeBefore: g.last - g.surely}.Proven(from, to)
	return append(g.ended[:len(g.ended):len(g.ended)], open)
}

// forget drops the gaps that ended before the instant until.
func (g *gapLog) forget(until int64) {
	g.ended = slices.DeleteFunc(g.ended, func(e record.Gap) bool { return e.To < until })
}

// proof collects when a request was unanswered, or failed, since the last success: only that proves an outage.
type proof struct {
	from, to       int64 // of the current period; 0, 0 = none
	bestFrom, best int64 // the longest earlier one
	waiting        bool  // a request has been in flight since waitFrom
	waitFrom       int64
	failedTo       int64 // the end of what was proven before waitFrom; 0 = nothing
	skipped, away  int64 // for how long the client did not run within the current period, and since its end
	skippedBefore  int64 // skipped when a request began to wait
	failure        int64 // the latest failed request or refused connection; 0 = none
}

// failed adds that a request failed that was in flight from one instant to the other. Whether another is in flight will be noted next.
func (p *proof) failed(from, to, bridge int64) {
	p.seen(from, to, bridge)
	p.failure = max(p.failure, to)
	p.waiting = false
}

// seen adds that the period from one instant to the other is proven; a pause up to bridge before it is, too.
func (p *proof) seen(from, to, bridge int64) {
	if p.to > 0 && !p.waiting && from > p.to+bridge {
		if length := p.to - p.from - p.skipped; length > p.best {
			p.bestFrom, p.best = p.from, length
		}
		p.from, p.to, p.skipped, p.away = from, to, 0, 0
		return
	}
	p.skipped, p.away = p.skipped+p.away, 0
	if p.to == 0 {
		p.from = from
	}
	p.from, p.to = min(p.from, from), max(p.to, to)
}

// wait adds that a request is in flight at an instant. It stays in flight until lost or idle is called.
func (p *proof) wait(at, bridge int64) {
	if p.waiting {
		return
	}
	p.failedTo, p.skippedBefore = 0, p.skipped
	if p.to > 0 && at <= p.to+bridge {
		p.failedTo = p.to
	}
	p.seen(at, at, bridge)
	p.waiting, p.waitFrom = true, at
}

// idle notes that no request is in flight any more: they failed.
func (p *proof) idle() { p.waiting = false }

// lost notes that a request in flight lost its connection, after the instant until.
func (p *proof) lost(until int64) {
	if p.waiting {
		p.to = max(p.to, until)
		p.waiting = false
	}
}

// skip notes that the client did not run from one instant to the other, so that nothing is proven there.
func (p *proof) skip(from, to int64) {
	p.lost(from)
	if p.to > 0 {
		p.away += max(0, to-max(from, p.to))
	}
}

// longest returns the longest period, later by what it skips; end is its end if a request is still in flight. Without any it returns 0, 0. That a request waited does not prove
// a pause before it that was longer: it has only been answered.
func (p *proof) longest(end int64) (from, to int64) {
	from, to = p.from+p.skipped, p.to
	switch {
	case !p.waiting:
	case p.failedTo > 0 && p.waitFrom-p.failedTo > end-p.waitFrom:
		from, to = p.from+p.skippedBefore, p.failedTo
	default:
		to = end
	}
	if p.best > to-from {
		return p.bestFrom, p.bestFrom + p.best
	}
	return from, to
}

// parts are the bits of the gap logs: bit 0 is the load's, bit 1+p that of record.Part p. A load with one operation has only the first.
type parts struct {
	count int
	of    []uint64 // by operation
}

func partsOf(readOnly []bool) parts {
	p := parts{count: 1, of: make([]uint64, len(readOnly))}
	for op := range p.of {
		p.of[op] = 1
		if len(readOnly) > 1 {
			kind := record.Writes
			if readOnly[op] {
				kind = record.Reads
			}
			p.of[op] |= 2<<kind | 2<<record.OpPart(op)
		}
	}
	if len(readOnly) > 1 {
		p.count = 1 + int(record.OpPart(len(readOnly)))
	}
	return p
}

// thresholds are those of the gap logs of a pod.
type thresholds struct{ parts, shards []atomic.Int64 }

// newThresholds returns thresholds that are equal for all logs, nanoseconds.
func newThresholds(parts, shards int, each int64) *thresholds {
	t := &thresholds{make([]atomic.Int64, parts), make([]atomic.Int64, shards)}
	for _, list := range [][]atomic.Int64{t.parts, t.shards} {
		for i := range list {
			list[i].Store(max(each, gapFloor))
		}
	}
	return t
}

// gapLogs are the gap logs of one client: of the load and its parts, and of the shards if there are several.
type gapLogs struct {
	thresholds *thresholds
	parts      []gapLog
	shards     []gapLog // grows as requests reach the shards
	sharded    bool
}

func newGapLogs(t *thresholds, sharded bool) gapLogs {
	g := gapLogs{thresholds: t, parts: make([]gapLog, len(t.parts)), sharded: sharded}
	for i := range g.parts {
		g.parts[i].threshold = &t.parts[i]
	}
	return g
}

// shard returns the log of a shard; nil if there is one shard, or none with this number.
func (g *gapLogs) shard(shard int) *gapLog {
	if !g.sharded || shard < 0 || shard >= len(g.thresholds.shards) {
		return nil
	}
	for len(g.shards) <= shard {
		g.shards = append(g.shards, gapLog{threshold: &g.thresholds.shards[len(g.shards)]})
	}
	return &g.shards[shard]
}

// add records what was read in one wake-up, in order of receipt.
func (g *gapLogs) add(list []receipt) {
	if !slices.IsSortedFunc(list, byReceipt) {
		slices.SortFunc(list, byReceipt)
	}
	for i := range list {
		a := &list[i]
		for m := a.ok; m != 0; m &= m - 1 {
			g.parts[bits.TrailingZeros64(m)].success(a)
		}
		for m := a.failed &^ a.ok; m != 0; m &= m - 1 {
			g.parts[bits.TrailingZeros64(m)].failure(a.sent, a.lo)
		}
		if s := g.shard(a.shard); s == nil {
			continue
		} else if a.ok != 0 {
			s.success(a)
		} else if a.failed != 0 {
			s.failure(a.sent, a.lo)
		}
	}
}

func byReceipt(a, b receipt) int { return cmp.Compare(a.hi, b.hi) }

// waiting notes at an instant which of the load's logs have a request in flight.
func (g *gapLogs) waiting(at int64, logs uint64) {
	for i := range g.parts {
		if p := &g.parts[i]; logs>>i&1 != 0 {
			p.wait(at)
		} else {
			p.proof.idle()
		}
	}
}

// refused notes that a connection to a shard was refused at an instant.
func (g *gapLogs) refused(shard int, at int64) {
	for i := range g.parts {
		g.parts[i].refused(at)
	}
	if s := g.shard(shard); s != nil {
		s.refused(at)
	}
}

// stalled notes that the client did not run from one instant to the other. What waited for a connection proves nothing then, as this process dials; a request in flight does,
// but with several shards only for its own: nobody asked the others.
func (g *gapLogs) stalled(from, to int64, inFlight bool) {
	if inFlight && !g.sharded {
		return
	}
	for i := range g.parts {
		g.parts[i].proof.skip(from, to)
	}
	for i := range g.shards {
		if !inFlight {
			g.shards[i].proof.skip(from, to)
		}
	}
}

// lost notes that a connection to a shard broke after an instant, with requests in flight.
func (g *gapLogs) lost(shard int, until int64) {
	for i := range g.parts {
		g.parts[i].proof.lost(until)
	}
	if s := g.shard(shard); s != nil {
		s.proof.lost(until)
	}
}
