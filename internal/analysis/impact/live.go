package impact

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record/merged"
)

// Live is what a record shows of a fault that is not over yet.
type Live struct {
	Outage time.Duration // as in Impact, so far; also after a recovery
	// fail + unknown + dropped, as a share of requests: the highest of any whole second after t0
	ErrorRate float64
	Ledger    summary.LiveLedger // from the interval that contains t0 on
	End       time.Duration      // of the complete record
}

// LiveOf returns what the complete part of a record shows of a fault.
func LiveOf(s *merged.Series, f Fault, o Options) Live {
	f.Deadline = 0
	a := newAnalysis(s, f, o.WithDefaults())
	a.until, a.soonest = a.limit, a.limit
	var m Impact
	a.outages(&m)
	live := Live{Outage: m.Outage.Value, End: s.End()}
	c := a.curve
	live.Ledger = summary.LedgerOf(c.Series, a.first, c.N)
	for i := c.Ceil(f.At); i+c.Wide <= c.N; i++ {
		live.ErrorRate = max(live.ErrorRate, c.ErrorRate(i, i+c.Wide))
	}
	return live
}

// Lately returns the state of the load at the end of its complete record: for how long it has had
// no success, and the error rate and the lost writes of the last second.
func Lately(s *merged.Series) Live {
	end := s.End()
	s = s.Fine(end-throughput.Second, end)
	live := Live{End: end}
	if gaps := s.Gaps(); len(gaps) > 0 && gaps[len(gaps)-1].Open {
		live.Outage = gap{Gap: gaps[len(gaps)-1]}.length()
	}
	c := throughput.CurveOf(s)
	live.Ledger = summary.LedgerOf(s, max(0, c.N-c.Wide), c.N)
	if c.N >= c.Wide {
		live.ErrorRate = c.ErrorRate(c.N-c.Wide, c.N)
	}
	return live
}
