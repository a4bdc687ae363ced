package plan

import "time"

// Planned is what a load asks for over time, whatever Redis serves. The zero value is a load that
// is constant, with no planned end.
type Planned struct {
	// planned requests/s or users on average over [from, to), counted from the start; nil = constant
	Mean func(from, to time.Duration) float64
	Rate bool // requests/s; otherwise users
	// users: the pause between a reply and the next request
	ThinkTime time.Duration
	// when the load becomes another one, whose throughput is not known; ascending, from the start
	Changes []time.Duration
	InTurn  bool // operations are sent one after the other
	// of the load, from the start: what comes after it is drained; 0 = not known
	End time.Duration
}

// Since returns the last change until an instant; 0 without one.
func (p Planned) Since(at time.Duration) time.Duration {
	since := time.Duration(0)
	for _, change := range p.Changes {
		if change <= at {
			since = change
		}
	}
	return since
}

// Planned returns how the load changes over the measured time, for the analysis of its record.
func (p *Plan) Planned() Planned {
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

// Planned returns how the shape changes the load. It is constant for a search, whose rates are set
// during the run.
func (s Shape) Planned() Planned {
	if len(s.Stages) == 0 {
		return Planned{End: s.Length()}
	}
	schedule := NewSchedule(s)
	mean := func(from, to time.Duration) float64 {
		return (schedule.Integral(int64(to)) - schedule.Integral(int64(from))) / (to - from).Seconds()
	}
	return Planned{
		Mean:      mean,
		Rate:      s.OpenLoop(),
		ThinkTime: s.ThinkTime,
		End:       s.Length(),
	}
}
