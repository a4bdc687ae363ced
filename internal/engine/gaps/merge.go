package gaps

import (
	"math"
	"slices"
	"sync"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/record"
)

// Source is a client whose gap logs are merged with those of the pod's other clients.
type Source struct {
	Lock sync.Locker
	Logs *Logs
	// Settled is the instant up to which all arrivals are in the logs; it is called with the lock
	// held.
	Settled func() int64
}

// Merge merges the gaps of a pod's clients: a gap of the pod is one that all of them have.
type Merge []Source

// settled is the instant up to which all clients have reported their arrivals: a client that did
// not run for a while may still have to report earlier ones, and these would divide a gap.
func (m Merge) settled() int64 {
	least := int64(math.MaxInt64)
	for _, s := range m {
		s.Lock.Lock()
		least = min(least, s.Settled())
		s.Lock.Unlock()
	}
	return least
}

// Take adds to the interval that ends at the instant end the gaps that have ended, as far as all
// clients have reported. With last it also adds those that are open at its end.
func (m Merge) Take(iv *record.Interval, parts int, end int64, last bool) {
	until := clock.Never
	if !last {
		until = min(end, m.settled())
		iv.Unsettled = until < end
	}
	of := func(part int) func(*Logs) *Log { return func(g *Logs) *Log { return &g.parts[part] } }
	iv.Gaps = m.gaps(of(0), until, end, last)
	for part := 1; part < parts; part++ {
		for _, g := range m.gaps(of(part), until, end, last) {
			iv.PartGaps = append(iv.PartGaps, record.PartGap{Part: record.Part(part - 1), Gap: g})
		}
	}
	for shard := range max(len(iv.Shards), m.shards()) { // nothing need have come of one that is down
		for _, g := range m.gaps(func(g *Logs) *Log { return g.Shard(shard) }, until, end, last) {
			iv.ShardGaps = append(iv.ShardGaps, record.ShardGap{Shard: shard, Gap: g})
		}
	}
}

// shards is how many shards any client has sent requests to.
func (m Merge) shards() (n int) {
	for _, s := range m {
		s.Lock.Lock()
		n = max(n, len(s.Logs.shards))
		s.Lock.Unlock()
	}
	return n
}

// OfLoad takes the common gaps of the load that ended before until; with last also the one that is
// open at the instant end.
func (m Merge) OfLoad(until, end int64, last bool) []record.Gap {
	return m.gaps(func(g *Logs) *Log { return &g.parts[0] }, until, end, last)
}

// gaps takes the common gaps of one log from all clients.
func (m Merge) gaps(of func(*Logs) *Log, until, end int64, last bool) []record.Gap {
	ended := last
	for _, s := range m {
		s.Lock.Lock()
		g := of(s.Logs)
		ended = ended || len(g.ended) > 0 && g.ended[0].To < until
		s.Lock.Unlock()
	}
	if !ended {
		return nil
	}
	common := []record.Gap{record.Unproven(0, clock.Never)}
	threshold, after := Floor, int64(0)
	for i, s := range m {
		s.Lock.Lock()
		g := of(s.Logs)
		threshold = g.threshold.Load()
		list := g.silence()
		if i == 0 {
			common, after = slices.Clone(list), g.afterAll // forget modifies the client's list
		} else {
			common = record.Overlap(common, list)
		}
		g.forget(until)
		s.Lock.Unlock()
	}
	common, after = longOf(common, threshold, after, until, end, last)
	if len(m) > 0 {
		m[0].Lock.Lock()
		of(m[0].Logs).afterAll = after
		m[0].Lock.Unlock()
	}
	return common
}

// longOf returns those of the gaps before until that are longer than the threshold, or right behind
// such a one and proven, and until when such a one tells that.
func longOf(
	gaps []record.Gap, threshold, after, until, end int64, last bool,
) ([]record.Gap, int64) {
	var out []record.Gap
	for _, g := range gaps {
		if g.To >= end && last {
			g = g.OpenAt(end)
		} else if g.To >= until {
			continue
		}
		switch {
		case g.AtMost() > threshold:
			after = g.To + threshold
		case g.AtMost() <= Floor || g.From >= after || !mayGoOn(&g):
			continue
		}
		out = append(out, g)
	}
	return out, after
}
