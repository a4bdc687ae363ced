package result

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record/merged"
)

// Gap is a time without a success.
type Gap struct {
	At      Seconds `json:"atSeconds"` // from the load's start
	Length  Seconds `json:"lengthSeconds"`
	AtLeast Seconds `json:"atLeastSeconds"` // the bounds of Length
	AtMost  Seconds `json:"atMostSeconds"`
	Open    bool    `json:"open,omitempty"` // it had not ended when the run did
	// Of is Reads or Writes if only these had no success; "" = the load. Only in the longest gap of a
	// load.
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

// SetGaps sets the longest gaps that reach into [from, end).
func (r *Load) SetGaps(series *merged.Series, from, end time.Duration) {
	all := gaps.New(series, from, end)
	r.LongestGap = longest(all.Load(), from, end)
	r.WriteGap = longest(all.Kind(impact.Writes), from, end)
	r.ReadGap = longest(all.Kind(impact.Reads), from, end)
	r.LongestGap = worst(r.LongestGap, r.WriteGap, r.ReadGap)
	r.ProbeGap = longest(all.Probe(), from, end)
	if len(r.Operations) > 1 {
		for op := range r.Operations {
			r.Operations[op].LongestGap = longest(all.Operation(op), from, end)
		}
	}
	shards := series.Shards()
	if shards == 1 { // its gaps are those of the load
		shards = 0
	}
	for shard := range shards {
		g := longest(all.Shard(shard), from, end)
		if g == nil {
			continue
		}
		if shard < len(r.Shards) {
			s := &r.Shards[shard]
			s.LongestGap, s.AtLeast, s.AtMost = g.Length, g.AtLeast, g.AtMost
		}
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

// Outage is the outage of a load: its longest gap, or that of a shard or of the probe, if that is
// provably longer, as for a fault. Of and Shard say of what; its bounds are the greatest of all,
// since those with a shorter gap may have been down for longer. nil = no gap was recorded.
func (r *Load) Outage() *ShardGap {
	all := &ShardGap{Gap: Gap{Of: impact.Load}}
	if r.LongestGap != nil {
		all.Gap = *r.LongestGap
		all.Of = cmp.Or(all.Of, impact.Load)
	}
	found, atLeast, atMost := all, all.AtLeast, all.AtMost
	consider := func(part ShardGap, of string) {
		part.Of = of
		if part.AtLeast > all.Length && part.Length > found.Length {
			found = &part
		}
		atLeast, atMost = max(atLeast, part.AtLeast), max(atMost, part.AtMost)
	}
	if r.LongestShardGap != nil {
		consider(*r.LongestShardGap, impact.Shard)
	}
	if r.ProbeGap != nil {
		consider(ShardGap{Gap: *r.ProbeGap}, impact.Probe)
	}
	if found.Length == 0 {
		return nil
	}
	found.AtLeast, found.AtMost = atLeast, atMost
	return found
}

// worst is the longest gap of the load, or that of its writes or reads if it is provably longer:
// the success of one hides the failure of the other.
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
		if kind.gap != nil && kind.gap.AtLeast > most &&
			(found == load || kind.gap.Length > found.Length) {
			found = new(*kind.gap)
			found.Of = kind.name
		}
	}
	return found
}

// longest is the longest gap that ends after from and begins before end, with the greatest of the
// bounds of these gaps; nil = none.
func longest(list []gaps.Bounded, from, end time.Duration) *Gap {
	var found *Gap
	var bounds durations.Bounded
	for _, g := range list {
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
func (c *Course) setGaps(series *merged.Series) {
	all := gaps.New(series, 0, series.End())
	c.Gaps, c.ProbeGaps = gapsOf(all.Load()), gapsOf(all.Probe())
	c.ReadGaps = gapsOf(all.Kind(impact.Reads))
	c.WriteGaps = gapsOf(all.Kind(impact.Writes))
	for op, name := range series.Ops {
		if len(series.Ops) == 1 {
			break // its gaps are those of the load
		}
		c.OperationGaps = append(c.OperationGaps, OperationGaps{
			Operation: name,
			Gaps:      gapsOf(all.Operation(op)),
		})
	}
	for shard := range series.Shards() {
		for _, g := range gapsOf(all.Shard(shard)) {
			c.ShardGaps = append(c.ShardGaps, ShardGap{Shard: shard, Gap: g})
		}
	}
}

func gapsOf(list []gaps.Bounded) []Gap {
	out := []Gap{}
	for _, g := range list {
		out = append(out, gapOf(g))
	}
	return out
}

func gapOf(g gaps.Bounded) Gap {
	return Gap{
		At:      Seconds(g.From),
		Length:  Seconds(g.Length.Value),
		AtLeast: Seconds(g.Length.AtLeast),
		AtMost:  Seconds(g.Length.AtMost),
		Open:    g.Open,
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

// Hidden are those of the gaps of reads or writes that are provably longer than every gap of the
// load meanwhile: the others had successes.
func (c *Course) Hidden(gaps []Gap) []Gap {
	return slices.DeleteFunc(slices.Clone(gaps), func(g Gap) bool {
		return slices.ContainsFunc(c.Gaps, func(all Gap) bool {
			return all.At < g.At+g.Length && g.At < all.At+all.Length && all.Length >= g.AtLeast
		})
	})
}
