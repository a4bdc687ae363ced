package engine

import (
	"cmp"
	"math/bits"
	"slices"
)

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

// all are the bits of all logs of the load and its parts.
func (g *gapLogs) all() uint64 { return 1<<len(g.parts) - 1 }

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
