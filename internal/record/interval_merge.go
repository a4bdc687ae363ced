package record

import (
	"slices"

	"github.com/redquake/redquake/internal/record/histogram"
)

// Add adds the counts of another interval, or of another pod.
func (c *Counts) Add(from *Counts) {
	to, by := c.Figures(), from.Figures()
	for i := range to {
		*to[i] += *by[i]
	}
	for i := range c.Errors {
		c.Errors[i] += from.Errors[i]
	}
}

// MergeHistograms adds the histograms.
func (o *Op) MergeHistograms(from *Op) {
	to, by := o.Histograms(), from.Histograms()
	for i := range to {
		*to[i] = histogram.Merge(*to[i], *by[i])
	}
}

// Figures lists the counts in the order of the encoding.
func (c *Counts) Figures() [11]*uint64 {
	return [...]*uint64{
		&c.OK, &c.Sent, &c.Due, &c.BytesOut, &c.BytesIn, &c.Fail, &c.Unknown,
		&c.Dropped, &c.Drained, &c.Missed, &c.Redirected,
	}
}

// MergeTallies adds the tallies, the requests of shards, the stalled time and the lost writes. Both
// have the same tallies.
func (iv *Interval) MergeTallies(from *Interval) {
	for k, n := range from.Tallies {
		iv.Tallies[k] += n
	}
	iv.Shards = addShardCounts(iv.Shards, from.Shards)
	for pod, n := range from.Stalled {
		iv.AddStalled(pod, n)
	}
	iv.mergeLost(from)
}

// MergeInstants widens the instants, and the longest lag, to those of another interval.
func (iv *Interval) MergeInstants(from *Interval) {
	iv.FirstError = Earlier(iv.FirstError, from.FirstError)
	iv.FirstOK = Earlier(iv.FirstOK, from.FirstOK)
	iv.LastError = max(iv.LastError, from.LastError)
	iv.LastOK = max(iv.LastOK, from.LastOK)
	iv.MaxLag = max(iv.MaxLag, from.MaxLag)
}

// Earlier is the smaller of two instants, of which -1 means none.
func Earlier(a, b int64) int64 {
	if a < 0 || (b >= 0 && b < a) {
		return b
	}
	return a
}

func addShardCounts(to, from []ShardCounts) []ShardCounts {
	for len(to) < len(from) {
		to = append(to, ShardCounts{})
	}
	for k := range from {
		to[k].OK += from[k].OK
		to[k].Errors += from[k].Errors
	}
	return to
}

// NewInterval returns an interval without any figure, with a number of operations.
func NewInterval(i int64, ops int) Interval {
	return Interval{
		Index:      i,
		Ops:        make([]Op, ops),
		FirstError: -1,
		LastError:  -1,
		FirstOK:    -1,
		LastOK:     -1,
	}
}

// Operation returns operation k of the interval; the probe follows the operations.
func (iv *Interval) Operation(k int) *Op {
	if k < len(iv.Ops) {
		return &iv.Ops[k]
	}
	return &iv.Probe
}

// Histograms lists those of every operation and of the probe.
func (iv *Interval) Histograms() []*histogram.Buckets {
	list := make([]*histogram.Buckets, 0, 3*(len(iv.Ops)+1))
	for k := range iv.Ops {
		h := iv.Ops[k].Histograms()
		list = append(list, h[:]...)
	}
	h := iv.Probe.Histograms()
	return append(list, h[:]...)
}

// Histograms lists the histograms in the order of the encoding.
func (o *Op) Histograms() [3]*histogram.Buckets {
	return [...]*histogram.Buckets{&o.Latency, &o.Service, &o.Waited}
}

// Clone returns a deep copy.
func (iv *Interval) Clone() Interval {
	c := *iv
	c.Ops = slices.Clone(iv.Ops)
	c.Tallies = slices.Clone(iv.Tallies)
	c.Shards = slices.Clone(iv.Shards)
	c.Lost, c.Stalled = slices.Clone(iv.Lost), slices.Clone(iv.Stalled)
	for _, h := range c.Histograms() {
		*h = slices.Clone(*h)
	}
	return c
}

// AddPart adds the counts of an interval of a finer grid, in order; begins tells that it is the
// first of them.
func (iv *Interval) AddPart(part *Interval, begins bool) {
	for k := range part.Ops {
		iv.Ops[k].Counts.Add(&part.Ops[k].Counts)
	}
	iv.Probe.Counts.Add(&part.Probe.Counts)
	iv.MergeInstants(part)
	iv.MergeTallies(part)
	if begins {
		iv.Pods = part.Pods
	}
	iv.Connections = part.Connections
}

// MergeHistograms adds the histograms of all operations and of the probe.
func (iv *Interval) MergeHistograms(part *Interval) {
	for k := range part.Ops {
		iv.Ops[k].MergeHistograms(&part.Ops[k])
	}
	iv.Probe.MergeHistograms(&part.Probe)
}

// AddStalled adds a time for which a pod did not run, in nanoseconds, to Stalled.
func (iv *Interval) AddStalled(pod int, n int64) {
	for n > 0 && len(iv.Stalled) <= pod {
		iv.Stalled = append(iv.Stalled, 0)
	}
	if n > 0 {
		iv.Stalled[pod] += n
	}
}

// mergeLost adds the lost writes of another interval.
func (iv *Interval) mergeLost(from *Interval) {
	for len(iv.Lost) < len(from.Lost) {
		iv.Lost = append(iv.Lost, 0)
	}
	for k, n := range from.Lost {
		iv.Lost[k] += n
	}
}

// MovedBack returns the interval of a pod whose clock is ahead, in nanoseconds, with its instants
// on the clock of the run. It shares the rest with iv.
func (iv *Interval) MovedBack(ahead int64) *Interval {
	if ahead == 0 {
		return iv
	}
	c := *iv
	for _, at := range [...]*int64{&c.FirstError, &c.LastError, &c.FirstOK, &c.LastOK} {
		if *at >= 0 {
			*at = max(0, *at-ahead)
		}
	}
	c.Gaps, c.ProbeGaps, c.PartGaps, c.Stalls = nil, nil, nil, nil
	c.ShardGaps = shardsEarlier(iv.ShardGaps, ahead)
	c.ProbeShardGaps = shardsEarlier(iv.ProbeShardGaps, ahead)
	for _, g := range iv.Gaps {
		c.Gaps = append(c.Gaps, g.earlier(ahead))
	}
	for _, g := range iv.ProbeGaps {
		c.ProbeGaps = append(c.ProbeGaps, g.earlier(ahead))
	}
	for _, g := range iv.PartGaps {
		c.PartGaps = append(c.PartGaps, PartGap{Part: g.Part, Gap: g.Gap.earlier(ahead)})
	}
	for _, stall := range iv.Stalls {
		c.Stalls = append(c.Stalls, Stall{From: stall.From - ahead, To: stall.To - ahead})
	}
	return &c
}

// earlier returns the gap moved by a time; the start of the run stays the start.
func (g Gap) earlier(by int64) Gap {
	if g.From != 0 {
		g.From -= by
	}
	g.To -= by
	return g
}

func shardsEarlier(gaps []ShardGap, ahead int64) []ShardGap {
	var list []ShardGap
	for _, g := range gaps {
		list = append(list, ShardGap{Shard: g.Shard, Gap: g.Gap.earlier(ahead)})
	}
	return list
}
