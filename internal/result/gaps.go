package result

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
)

// Gap is a time without a success.
type Gap struct {
	At      Seconds `json:"atSeconds"` // from the load's start
	Length  Seconds `json:"lengthSeconds"`
	AtLeast Seconds `json:"atLeastSeconds"` // the bounds of Length
	AtMost  Seconds `json:"atMostSeconds"`
	Open    bool    `json:"open,omitempty"` // it had not ended when the run did
	// Of is Reads or Writes if only these had no success; "" = the load. Only in the longest gap of a load.
	Of string `json:"of,omitempty"`
}

// ShardGap is a Gap of one shard.
type ShardGap struct {
	Shard int `json:"shard"` // in the order of the slots that they served at the start
	Gap
}

// OperationGaps are the Gaps of one operation.
type OperationGaps struct {
	Operation string `json:"operation"`
	Gaps      []Gap  `json:"gaps"`
}

// setGaps sets the longest gaps that reach into [from, end).
func (r *Load) setGaps(series *record.Series, from, end time.Duration) {
	gaps := impact.NewGaps(series, from, end)
	r.LongestGap = longest(gaps.Load(), from, end)
	r.WriteGap, r.ReadGap = longest(gaps.Kind(impact.Writes), from, end), longest(gaps.Kind(impact.Reads), from, end)
	r.LongestGap = worst(r.LongestGap, r.WriteGap, r.ReadGap)
	r.ProbeGap = longest(gaps.Probe(), from, end)
	if len(r.Operations) > 1 {
		for op := range r.Operations {
			r.Operations[op].LongestGap = longest(gaps.Operation(op), from, end)
		}
	}
	for shard := range r.Shards {
		g := longest(gaps.Shard(shard), from, end)
		if g == nil {
			continue
		}
		s := &r.Shards[shard]
		s.LongestGap, s.AtLeast, s.AtMost = g.Length, g.AtLeast, g.AtMost
		worst := r.LongestShardGap
		if worst == nil {
			worst = &ShardGap{}
			r.LongestShardGap = worst
		}
		atLeast, atMost := max(worst.AtLeast, g.AtLeast), max(worst.AtMost, g.AtMost)
		if g.Length > worst.Length {
			*worst = ShardGap{Shard: shard, Gap: *g}
		}
		worst.AtLeast, worst.AtMost = atLeast, atMost
	}
}

// worst is the longest gap of the load, or that of its writes or reads if it is provably longer: the success of one hides the failure of the other.
func worst(load, writes, reads *Gap) *Gap {
	most := Seconds(0)
	if load != nil {
		most = load.Length
	}
	found := load
	for _, kind := range []struct {
		name string
		gap  *Gap
	}{{impact.Writes, writes}, {impact.Reads, reads}} {
		if kind.gap != nil && kind.gap.AtLeast > most && (found == load || kind.gap.Length > found.Length) {
			found = new(*kind.gap)
			found.Of = kind.name
		}
	}
	return found
}

// longest is the longest gap that ends after from and begins before end, with the greatest of the bounds of these gaps; nil = none.
func longest(gaps []impact.BoundedGap, from, end time.Duration) *Gap {
	var found *Gap
	var bounds impact.Bounded
	for _, g := range gaps {
		if time.Duration(g.To) <= from || time.Duration(g.From) >= end {
			continue
		}
		bounds = bounds.Max(g.Length)
		if found == nil || Seconds(g.Length.Value) > found.Length {
			found = new(gapOf(g))
		}
	}
	if found != nil {
		found.AtLeast, found.AtMost = Seconds(bounds.AtLeast), Seconds(bounds.AtMost)
	}
	return found
}

// setGaps sets all gaps.
func (c *Course) setGaps(series *record.Series) {
	gaps := impact.NewGaps(series, 0, series.End())
	c.Gaps, c.ProbeGaps = gapsOf(gaps.Load()), gapsOf(gaps.Probe())
	c.ReadGaps, c.WriteGaps = gapsOf(gaps.Kind(impact.Reads)), gapsOf(gaps.Kind(impact.Writes))
	for op, name := range series.Ops {
		if len(series.Ops) == 1 {
			break // its gaps are those of the load
		}
		c.OperationGaps = append(c.OperationGaps, OperationGaps{Operation: name, Gaps: gapsOf(gaps.Operation(op))})
	}
	for shard := range series.Shards() {
		for _, g := range gapsOf(gaps.Shard(shard)) {
			c.ShardGaps = append(c.ShardGaps, ShardGap{Shard: shard, Gap: g})
		}
	}
}

func gapsOf(gaps []impact.BoundedGap) []Gap {
	out := []Gap{}
	for _, g := range gaps {
		out = append(out, gapOf(g))
	}
	return out
}

func gapOf(g impact.BoundedGap) Gap {
	return Gap{
		At: Seconds(g.From), Length: Seconds(g.Length.Value), AtLeast: Seconds(g.Length.AtLeast), AtMost: Seconds(g.Length.AtMost), Open: g.Open,
	}
}

// Selected are the gaps of what the rows are of: of the load, or of the selected operation.
func (c *Course) Selected() []Gap {
	for _, o := range c.OperationGaps {
		if o.Operation == c.Operation {
			return o.Gaps
		}
	}
	return c.Gaps
}

// Hidden are those of the gaps of reads or writes that are provably longer than every gap of the load meanwhile: the others had successes.
func (c *Course) Hidden(gaps []Gap) []Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g Gap) bool {
		return slices.ContainsFunc(c.Gaps, func(all Gap) bool {
			return all.At < g.At+g.Length && g.At < all.At+all.Length && all.Length >= g.AtLeast
		})
	})
}
