// Package gaps logs the periods without a success that a load has seen, with bounds for their ends
// and what proves them, and merges those of several clients. All instants are nanoseconds since the
// start of the run.
package gaps

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Floor is the minimum length of a gap.
const Floor = int64(5 * time.Millisecond)

// Log records every period without a success that can have been longer than its threshold, as one
// client sees it: an event loop, or a probe.
// Instants are nanoseconds since the start. It has no lock.
type Log struct {
	// all clients of a pod share it: the merged gaps of a pod are complete above it
	threshold *atomic.Int64
	last      int64 // the latest success; 0 before the first: the start
	// the latest instant at which a success up to last can have arrived at the earliest
	surely int64
	proof  proof        // since last
	ended  []record.Gap // by time; not yet forgotten
	// until then, shorter gaps may be a part of one that was longer than the threshold; see mayGoOn
	after int64
	// in the log of the first client of a pod: the same of the gaps that all clients have
	afterAll int64
}

// success records successes. They may be reported out of order.
func (g *Log) success(a *Receipt) {
	if a.Hi <= g.last {
		g.late(a)
	} else {
		g.next(a)
	}
	g.prove(a)
}

// next records successes that arrived after all before.
func (g *Log) next(a *Receipt) {
	if n := len(g.ended); n > 0 && a.Lo < g.ended[n-1].To {
		g.sooner(a.Lo)
	}
	switch threshold := g.threshold.Load(); { // it is known only that a success arrived until surely
	case a.Hi-g.surely > threshold:
		g.ended = append(g.ended, g.gapTo(a))
		g.after = a.Hi + threshold
	case a.Hi-g.surely > Floor && g.last < g.after && g.proof.skipped+g.proof.away == 0:
		one := record.Gap{
			From:        g.last,
			To:          a.Hi,
			MaybeBefore: g.last - g.surely,
			MaybeSooner: a.Hi - a.Lo,
		}.Proven(max(a.Since, g.last), a.Hi)
		if mayGoOn(&one) {
			g.ended = append(g.ended, one)
		}
	}
	g.last, g.surely = a.Hi, max(g.surely, a.Surely)
	g.proof = proof{}
}

// prove adds what a success proves of gaps: a request in flight waited in vain.
func (g *Log) prove(a *Receipt) {
	for i := len(g.ended) - 1; i >= 0 && a.Flight > 0 && g.ended[i].To > a.Flight; i-- {
		e := &g.ended[i]
		from, to := max(a.Flight, e.From), min(a.Lo, e.To)
		if to-from > e.To-e.From-e.UnprovenHead-e.UnprovenTail {
			*e = e.Proven(from, to)
		}
	}
}

// mayGoOn reports whether a gap that is no longer than the threshold tells, right behind a longer
// one, that the outage went on: replies that the network had held back arrive from a server that
// does not answer yet. Where requests are rare it is shorter than twice the time between them.
func mayGoOn(g *record.Gap) bool {
	return !g.Open && g.AtLeast(0) > Floor
}

// gapTo is the gap that successes end. If the server was alive in it and could have answered early,
// either the outage was over by then, or a later one kept the request waiting: the longer proof
// counts. It could not while other requests failed.
func (g *Log) gapTo(a *Receipt) record.Gap {
	from, to := g.proof.longest(a.Hi)
	lo, early := a.Lo, max(a.Early, g.proof.failure)
	switch {
	case a.Alive <= g.last: // nothing was heard of it in the gap
	case a.Lo-a.Asked <= min(to, early)-from:
		lo = min(lo, early)
	default:
		from, to = a.Asked, a.Hi
	}
	return record.Gap{
		From:        g.last,
		To:          a.Hi,
		MaybeBefore: g.last - g.surely,
		MaybeSooner: a.Hi - lo,
	}.Proven(max(from, g.last), to)
}

// failure records that a request failed which had been in flight from one instant to the other.
func (g *Log) failure(from, to int64) {
	if from = max(from, g.last); from <= to {
		g.proof.failed(from, to, g.bridge())
	}
}

// bridge is the longest pause between two proofs that does not interrupt them: of clients that
// redial, or eight mean times of a log with few requests.
// With random arrivals one pause in e^8 is longer.
func (g *Log) bridge() int64 {
	return max(record.Bridge, 4*g.threshold.Load())
}

// Wait notes that a request is in flight at an instant.
func (g *Log) Wait(at int64) {
	g.proof.wait(at, g.bridge())
}

// Idle notes that no request is in flight any more: they failed.
func (g *Log) Idle() {
	g.proof.idle()
}

// refused notes that a connection was refused at an instant.
func (g *Log) refused(at int64) {
	g.proof.seen(at, at, g.bridge())
	g.proof.failure = max(g.proof.failure, at)
}

// sooner notes that a success which was read after a gap can have arrived in it.
func (g *Log) sooner(lo int64) {
	for i := range g.ended {
		if e := &g.ended[i]; lo < e.To {
			e.MaybeSooner = max(e.MaybeSooner, e.To-lo)
		}
	}
}

// late records successes that arrived before one that was reported earlier. They can divide a gap.
func (g *Log) late(a *Receipt) {
	for i := 0; i < len(g.ended); i++ {
		e := g.ended[i]
		switch {
		case a.Hi <= e.From:
			g.ended[i].MaybeBefore = min(e.MaybeBefore, max(0, e.From-a.Surely))
		case a.Hi >= e.To:
			g.ended[i].MaybeSooner = max(e.MaybeSooner, e.To-a.Lo)
		default:
			before, after := e.Divide(a.Lo, a.Surely, a.Hi)
			g.ended = slices.Replace(g.ended, i, i+1, before, after)
			i++
		}
	}
	g.surely = max(g.surely, a.Surely)
	g.proof = proof{} // it seemed to be in flight since
}

// silence returns the gaps that have not been forgotten, and the period since the last success,
// which has no end.
func (g *Log) silence() []record.Gap {
	from, to := g.proof.longest(math.MaxInt64)
	open := record.Gap{
		From:        g.last,
		To:          math.MaxInt64,
		MaybeBefore: g.last - g.surely,
	}.Proven(from, to)
	return append(g.ended[:len(g.ended):len(g.ended)], open)
}

// forget drops the gaps that ended before the instant until.
func (g *Log) forget(until int64) {
	g.ended = slices.DeleteFunc(g.ended, func(e record.Gap) bool { return e.To < until })
}
