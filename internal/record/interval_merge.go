package record

import "github.com/redquake/redquake/internal/record/histogram"

func (c *Counts) add(from *Counts) {
	to, by := c.figures(), from.figures()
	for i := range to {
		*to[i] += *by[i]
	}
	for i := range c.Errors {
		c.Errors[i] += from.Errors[i]
	}
}

// merge adds the histograms.
func (o *Op) merge(from *Op) {
	to, by := o.histograms(), from.histograms()
	for i := range to {
		*to[i] = histogram.Merge(*to[i], *by[i])
	}
}

// figures lists the counts in the order of the encoding.
func (c *Counts) figures() [9]*uint64 {
	return [...]*uint64{&c.OK, &c.Sent, &c.Due, &c.BytesOut, &c.BytesIn, &c.Fail, &c.Unknown, &c.Dropped, &c.Drained}
}

func (iv *Interval) mergeTallies(from *Interval) {
	for k, n := range from.Tallies {
		iv.Tallies[k] += n
	}
	iv.Shards = addShardCounts(iv.Shards, from.Shards)
	for pod, n := range from.Stalled {
		iv.addStalled(pod, n)
	}
	iv.mergeLost(from)
}

func (iv *Interval) mergeInstants(from *Interval) {
	iv.FirstError, iv.FirstOK = earlier(iv.FirstError, from.FirstError), earlier(iv.FirstOK, from.FirstOK)
	iv.LastError, iv.LastOK = max(iv.LastError, from.LastError), max(iv.LastOK, from.LastOK)
	iv.MaxLag = max(iv.MaxLag, from.MaxLag)
}

// earlier is the smaller of two instants, of which -1 means none.
func earlier(a, b int64) int64 {
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

func sumOK(ops []Op) uint64 {
	var n uint64
	for i := range ops {
		n += ops[i].OK
	}
	return n
}

func newInterval(i int64, ops int) Interval {
	return Interval{Index: i, Ops: make([]Op, ops), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1}
}

// op returns operation k of the interval; the probe follows the operations.
func (iv *Interval) op(k int) *Op {
	if k < len(iv.Ops) {
		return &iv.Ops[k]
	}
	return &iv.Probe
}

// allHistograms lists those of every operation and of the probe.
func (iv *Interval) allHistograms() []*histogram.Buckets {
	list := make([]*histogram.Buckets, 0, 3*(len(iv.Ops)+1))
	for k := range iv.Ops {
		h := iv.Ops[k].histograms()
		list = append(list, h[:]...)
	}
	h := iv.Probe.histograms()
	return append(list, h[:]...)
}

// histograms lists the histograms in the order of the encoding.
func (o *Op) histograms() [3]*histogram.Buckets {
	return [...]*histogram.Buckets{&o.Latency, &o.Service, &o.Waited}
}
