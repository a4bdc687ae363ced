package plan

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// Planned returns how the load changes over the measured time, for the analysis of its record.
func (p *Plan) Planned() impact.Planned {
	planned := p.Shape.Planned()
	t := p.Turns()
	planned.InTurn = t != nil
	if t != nil && t.Each > 0 && !p.Shape.OpenLoop() { // the throughput is that of the operation
		for k := 1; k < t.Count; k++ {
			planned.Changes = append(planned.Changes, t.From+time.Duration(k)*t.Each)
		}
	}
	return planned
}

// Planned returns how the shape changes the load. It is constant for a search, whose rates are set during the run.
func (s Shape) Planned() impact.Planned {
	if len(s.Stages) == 0 {
		return impact.Planned{End: s.Length()}
	}
	schedule := NewSchedule(s)
	mean := func(from, to time.Duration) float64 {
		return (schedule.Integral(int64(to)) - schedule.Integral(int64(from))) / (to - from).Seconds()
	}
	return impact.Planned{Mean: mean, Rate: s.OpenLoop(), ThinkTime: s.ThinkTime, End: s.Length()}
}
