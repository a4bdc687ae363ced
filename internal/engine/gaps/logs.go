package gaps

import (
	"cmp"
	"math/bits"
	"slices"
)

// Logs are the gap logs of one client: of the load and its parts, and of the shards if there are
// several.
type Logs struct {
	thresholds *Thresholds
	parts      []Log
	shards     []Log // grows as requests reach the shards
	Sharded    bool
}

// NewLogs returns the logs of one client. With sharded it also has one for each shard.
func NewLogs(t *Thresholds, sharded bool) Logs {
	g := Logs{
		thresholds: t,
		parts:      make([]Log, len(t.parts)),
		Sharded:    sharded,
	}
	for i := range g.parts {
		g.parts[i].threshold = &t.parts[i]
	}
	return g
}

// All are the bits of all logs of the load and its parts.
func (g *Logs) All() uint64 {
	return 1<<len(g.parts) - 1
}

// Shard returns the log of a shard; nil if there is one shard, or none with this number.
func (g *Logs) Shard(shard int) *Log {
	if !g.Sharded || shard < 0 || shard >= len(g.thresholds.shards) {
		return nil
	}
	for len(g.shards) <= shard {
		g.shards = append(g.shards, Log{threshold: &g.thresholds.shards[len(g.shards)]})
	}
	return &g.shards[shard]
}

// Add records what was read in one wake-up, in order of receipt.
func (g *Logs) Add(list []Receipt) {
	if !slices.IsSortedFunc(list, byReceipt) {
		slices.SortFunc(list, byReceipt)
	}
	for i := range list {
		a := &list[i]
		for m := a.OK; m != 0; m &= m - 1 {
			g.parts[bits.TrailingZeros64(m)].success(a)
		}
		for m := a.Failed &^ a.OK; m != 0; m &= m - 1 {
			g.parts[bits.TrailingZeros64(m)].failure(a.Sent, a.Lo)
		}
		if s := g.Shard(a.Shard); s == nil {
			continue
		} else if a.OK != 0 {
			s.success(a)
		} else if a.Failed != 0 {
			s.failure(a.Sent, a.Lo)
		}
	}
}

func byReceipt(a, b Receipt) int {
	return cmp.Compare(a.Hi, b.Hi)
}

// Waiting notes at an instant which of the load's logs have a request in flight.
func (g *Logs) Waiting(at int64, logs uint64) {
	for i := range g.parts {
		if p := &g.parts[i]; logs>>i&1 != 0 {
			p.Wait(at)
		} else {
			p.proof.idle()
		}
	}
}

// Refused notes that a connection to a shard was refused at an instant.
func (g *Logs) Refused(shard int, at int64) {
	for i := range g.parts {
		g.parts[i].refused(at)
	}
	if s := g.Shard(shard); s != nil {
		s.refused(at)
	}
}

// Stalled notes that the client did not run from one instant to the other. What waited for a
// connection proves nothing then, as this process dials; a request in flight does, but with several
// shards only for its own: nobody asked the others.
func (g *Logs) Stalled(from, to int64, inFlight bool) {
	if inFlight && !g.Sharded {
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

// Lost notes that a connection to a shard broke after an instant, with requests in flight.
func (g *Logs) Lost(shard int, until int64) {
	for i := range g.parts {
		g.parts[i].proof.lost(until)
	}
	if s := g.Shard(shard); s != nil {
		s.proof.lost(until)
	}
}
