package impact

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record"
)

// shardDoubt returns a doubt if all reads or all writes of one shard may have failed for longer
// than the outages say, by a second or more: a success of the other kind ends a gap of the shard,
// and one of another shard a gap of the kind.
func (a *analysis) shardDoubt(m *Impact) *Doubt {
	if len(a.kinds) == 0 || len(a.shards) < 2 {
		return nil
	}
	known := m.Outage.AtMost + a.curve.Width()
	var doubt *Doubt
	for shard := range a.shards {
		first, end := a.failingAt(shard)
		length := a.curve.At(end - first)
		if length <= known {
			continue
		}
		if kind := a.lacking(shard, first, end); kind != "" {
			known = length
			doubt = &Doubt{
				ShardPartlyFailed,
				fmt.Sprintf(
					"requests to shard %d failed for %s while others to it succeeded, and at least half as many %s are missing as it "+
						"usually serves: if it served none of them, their outage is that long, and no outage has it",
					shard, brief(length), strings.ToLower(kind)),
			}
		}
	}
	return doubt
}

// failingAt returns the longest part [first, end) from t0 to recovery in which, in every second,
// more requests failed at a shard than in any second of the baseline.
func (a *analysis) failingAt(shard int) (first, end int) {
	c := a.curve
	errors := make([]uint64, c.N+1)
	for i := range c.N {
		errors[i+1] = errors[i]
		if counts := c.Series.At(i).Shards; shard < len(counts) {
			errors[i+1] += counts[shard].Errors
		}
	}
	usual := uint64(0)
	for i := a.base.first; i+c.Wide <= a.first; i++ {
		usual = max(usual, errors[i+c.Wide]-errors[i])
	}
	begin := a.first // of the windows that exceed it
	for i := a.first; i+c.Wide <= c.N && c.At(i) <= a.until; i++ {
		if errors[i+c.Wide]-errors[i] <= usual {
			begin = i + 1
			continue
		}
		from := begin
		if begin > a.first {
			from += c.Wide - 1 // the first window exceeds it by its last interval
		}
		if i+1-from > end-first {
			first, end = from, i+1
		}
	}
	return first, end
}

// lacking returns the kind of which half as many requests are missing in the intervals [first, end)
// as a shard usually serves; "" = neither.
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
		c := throughput.CurveOfOps(a.curve.Series, opsOf(a.curve.Series, a.kinds[i].name))
		expected := throughput.Median(a.expected.SecondsBefore(c, a.base.first, a.first)) *
			a.expected.Mean(first, end)
		if expected > 0 && c.Rate(first, end) <= (1-served/all/2)*expected {
			return a.kinds[i].name
		}
	}
	return ""
}
