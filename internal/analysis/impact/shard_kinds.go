package impact

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/record"
)

// shardDoubt returns a doubt if all reads or all writes of one shard may have failed for longer than the outages say, by a second or more: a success of
// the other kind ends a gap of the shard, and one of another shard a gap of the kind.
func (a *analysis) shardDoubt(m *Impact) *Doubt {
	if len(a.kinds) == 0 || len(a.shards) < 2 {
		return nil
	}
	known := m.Outage.AtMost + a.curve.width()
	var doubt *Doubt
	for shard := range a.shards {
		first, end := a.failingAt(shard)
		length := a.curve.at(end - first)
		if length <= known {
			continue
		}
		if kind := a.lacking(shard, first, end); kind != "" {
			known = length
			doubt = &Doubt{ShardPartlyFailed, fmt.Sprintf("requests to shard %d failed for %s while others to it succeeded, and at least half as many %s are missing as it "+
				"usually serves: if it served none of them, their outage is that long, and no outage has it", shard, brief(length), strings.ToLower(kind))}
		}
	}
	return doubt
}

// failingAt returns the longest part [first, end) from t0 to recovery in which, in every second, more requests failed at a shard than in any second of the
// baseline.
func (a *analysis) failingAt(shard int) (first, end int) {
	c := a.curve
	errors := make([]uint64, c.n+1)
	for i := range c.n {
		errors[i+1] = errors[i]
		if counts := c.series.At(i).Shards; shard < len(counts) {
			errors[i+1] += counts[shard].Errors
		}
	}
	usual := uint64(0)
	for i := a.baseFirst; i+c.wide <= a.first; i++ {
		usual = max(usual, errors[i+c.wide]-errors[i])
	}
	begin := a.first // of the windows that exceed it
	for i := a.first; i+c.wide <= c.n && c.at(i) <= a.until; i++ {
		if errors[i+c.wide]-errors[i] <= usual {
			begin = i + 1
			continue
		}
		from := begin
		if begin > a.first {
			from += c.wide - 1 // the first window exceeds it by its last interval
		}
		if i+1-from > end-first {
			first, end = from, i+1
		}
	}
	return first, end
}

// lacking returns the kind of which half as many requests are missing in the intervals [first, end) as a shard usually serves; "" = neither.
func (a *analysis) lacking(shard, first, end int) string {
	served, all := 0.0, 0.0
	for i := range a.shards {
		ok := float64(a.sum(func(iv *record.Interval) uint64 { return shardOK(iv, i) }))
		if all += ok; i == shard {
			served = ok
		}
	}
	if all == 0 {
		return ""
	}
	for i := range a.kinds {
		c := curveOf(a.curve.series, opsOf(a.curve.series, a.kinds[i].name))
		expected := median(a.expected.secondsBefore(c, a.baseFirst, a.first)) * a.expected.mean(first, end)
		if expected > 0 && c.rate(first, end) <= (1-served/all/2)*expected {
			return a.kinds[i].name
		}
	}
	return ""
}
