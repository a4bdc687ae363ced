package impact

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/throughput"
)

// errorInstants returns the first error of a curve's operations at or after t0 and the last one
// until recovery that are in excess of the baseline's;
// -1 = none. Intervals contain the instants of the errors of all operations: those of a part are
// known to the interval.
//
// Without errors in the baseline, every error is. Otherwise an interval is in excess if the second
// that ends with it, or for the last error the second that begins with it, has more errors than any
// second of the baseline had, and more than the baseline's error rate + ErrorMargin implies.
func (a *analysis) errorInstants(c *throughput.Curve) (first, last time.Duration) {
	first, last = -1, -1
	baseError := c.ErrorRate(a.base.first, a.first)
	window := func(from, to int) (errors uint64, allowed float64) {
		from, to = max(from, 0), min(to, c.N)
		errors = c.Failed[to] - c.Failed[from]
		requests := c.OK[to] - c.OK[from] + c.Bad[to] - c.Bad[from]
		return errors, (baseError + a.options.ErrorMargin) * float64(requests)
	}
	usual := uint64(0)
	for i := a.base.first; i+c.Wide <= a.first; i++ {
		usual = max(usual, c.Failed[i+c.Wide]-c.Failed[i])
	}
	exceeds := func(from, to int) bool {
		errors, allowed := window(from, to)
		return errors > usual && (usual == 0 || float64(errors) > allowed)
	}
	for i := a.first; i < c.N && c.At(i) <= a.until; i++ {
		if c.Failed[i+1] == c.Failed[i] {
			continue
		}
		iv := c.Series.At(i)
		for _, at := range [...]time.Duration{time.Duration(iv.FirstError), time.Duration(iv.LastError)} {
			if at < a.fault.At || at > a.until {
				continue
			}
			if first < 0 && exceeds(i+1-c.Wide, i+1) {
				first = at
			}
			if first >= 0 && exceeds(i, i+c.Wide) {
				last = max(last, at)
			}
		}
	}
	return first, max(first, last)
}
