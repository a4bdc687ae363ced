package plan

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// Course returns how the load changes over the measured time, for the analysis of its record. A search has no course: its rates are set during the run.
func (s Shape) Course() impact.Course {
	if len(s.Stages) == 0 {
		return impact.Course{}
	}
	schedule := NewSchedule(s)
	mean := func(from, to time.Duration) float64 {
		return (schedule.Integral(int64(to)) - schedule.Integral(int64(from))) / (to - from).Seconds()
	}
	return impact.Course{Mean: mean, Rate: s.OpenLoop(), ThinkTime: s.ThinkTime}
}
