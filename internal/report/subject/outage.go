package subject

import (
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Over reports whether the load has ended: only then its status has the longest outage.
func (s *Run) Over() bool {
	if s.Test == nil {
		return s.In.Load != nil || s.In.Series.Ended()
	}
	state, _ := StateOf(s.Test.Status.Conditions, true)
	return state == report.Complete || state == report.Failed && s.Load.Outage() != nil
}

// Outage is the longest outage of the load; of one that is not over that of its record so far, or
// that of a fault, if that is longer. nil = none is known.
func (s *Run) Outage() *result.ShardGap {
	g := s.Load.Outage()
	if g != nil || s.Over() {
		return s.Known(g)
	}
	if s.In.Series != nil {
		var seen result.Load
		seen.SetGaps(s.In.Series, s.From, s.In.Series.End())
		g = seen.Outage()
	}
	for _, f := range s.Faults {
		o := f.Result.Outage()
		if o.Value == 0 || g != nil && result.Seconds(o.Value) <= g.Length {
			continue
		}
		g = &result.ShardGap{Shard: o.Shard, Gap: result.Gap{
			Length:  result.Seconds(o.Value),
			AtLeast: result.Seconds(o.AtLeast),
			AtMost:  result.Seconds(o.AtMost),
			Of:      o.Of,
		}}
	}
	return s.Known(g)
}

// Known is a gap as exactly as it is known: one that was the outage of a fault has its bounds,
// which are by what was usual before the fault; those of the load are by what was usual in all of
// its time. So the same gap has the same bounds wherever it is shown.
func (s *Run) Known(g *result.ShardGap) *result.ShardGap {
	if g == nil {
		return nil
	}
	for _, f := range s.Faults {
		o := f.Result.Outage()
		if o.Value > 0 && (o.Value-time.Duration(g.Length)).Abs() < time.Microsecond {
			same := *g
			same.AtLeast = result.Seconds(o.AtLeast)
			same.AtMost = result.Seconds(o.AtMost)
			return &same
		}
	}
	return g
}
