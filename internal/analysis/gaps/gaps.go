// Package gaps is the times without a success of a record, with the bounds of what clients waited
// in them, and what is usual in the part of a record without an outage.
package gaps

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Kinds of requests.
const (
	Reads  = "Reads"
	Writes = "Writes"
)

// Bounded is a gap of a record with the bounds of its length.
type Bounded struct {
	record.Gap
	Length durations.Bounded
}

// Gaps are the gaps of a record. Their bounds are those of an outage (see impact.Analyze), with the
// part of the record in which the server served as the baseline. The probe's and the load's gaps
// are all; those of reads, writes, operations and shards are only those in which a request waited
// in vain.
type Gaps struct {
	series *merged.Series
	steady *Sample
}

// New returns the gaps of a record. What is usual without an outage is taken from the intervals
// between two instants.
func New(s *merged.Series, from, to time.Duration) *Gaps {
	first, end := s.Window(from, to)
	return &Gaps{series: s, steady: Steady(s, first, end)}
}

// Load returns the gaps of the load.
func (g *Gaps) Load() []Bounded {
	return g.bounded(g.series.Gaps(), g.usual(nil), false)
}

// Kind returns the gaps of Reads or of Writes; nil for a load that has only one of them.
func (g *Gaps) Kind(kind string) []Bounded {
	ops := Operations(g.series, kind)
	if len(ops) == 0 || len(ops) == len(g.series.Ops) {
		return nil
	}
	return g.bounded(OfKind(g.series, kind), g.usual(ops), true)
}

// Operation returns the gaps of one operation.
func (g *Gaps) Operation(op int) []Bounded {
	if len(g.series.Ops) == 1 {
		return g.Load()
	}
	return g.bounded(g.series.OpGaps(op), g.usual([]int{op}), true)
}

// Shard returns the gaps of one shard.
func (g *Gaps) Shard(shard int) []Bounded {
	ok := g.steady.AtShard(shard)
	return g.bounded(g.series.ShardGaps(shard), UsualWait(g.usual(nil), g.steady.length(), ok), true)
}

// Probe returns the gaps of the probe, with several shards those of each one's; nil without a
// probe.
func (g *Gaps) Probe() []Bounded {
	usual := UsualWait(g.steady.ServiceOfProbe(0.99), g.steady.length(), g.steady.OfProbe())
	var list []Bounded
	for _, gaps := range OfProbes(g.series) {
		list = append(list, g.bounded(gaps, usual, false)...)
	}
	slices.SortStableFunc(list, func(a, b Bounded) int { return cmp.Compare(a.From, b.From) })
	return list
}

func (g *Gaps) usual(ops []int) time.Duration {
	return UsualWait(g.steady.Service(ops, 0.99), g.steady.length(), g.steady.Successes(ops))
}

func (g *Gaps) bounded(gaps []record.Gap, usual time.Duration, proven bool) []Bounded {
	apart := time.Duration(0)
	if g.series.Pods > 1 {
		apart = 2 * g.series.ClockUncertainty
	}
	var out []Bounded
	for _, one := range gaps {
		atLeast := Proven(one, usual, 0)
		if proven && atLeast == 0 {
			continue
		}
		length, atMost := time.Duration(one.To-one.From), time.Duration(one.AtMost())
		out = append(out, Bounded{one, durations.Within(length, atLeast-apart, atMost+apart)})
	}
	return out
}

// Operations returns the operations of a kind.
func Operations(s *merged.Series, kind string) (ops []int) {
	for op := range s.Ops {
		if s.ReadOnly(op) == (kind == Reads) {
			ops = append(ops, op)
		}
	}
	return ops
}

// OfKind returns the gaps of Reads or of Writes.
func OfKind(s *merged.Series, kind string) []record.Gap {
	if kind == Reads {
		return s.ReadGaps()
	}
	return s.WriteGaps()
}

// OfProbes returns the gaps of the probe of each shard, or of the only one.
func OfProbes(s *merged.Series) [][]record.Gap {
	n := s.ProbeShards()
	if n == 0 {
		return [][]record.Gap{s.ProbeGaps()}
	}
	list := make([][]record.Gap, n)
	for shard := range list {
		list[shard] = s.ProbeShardGaps(shard)
	}
	return list
}
