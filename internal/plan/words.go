package plan

import (
	"fmt"

	"github.com/redquake/redquake/internal/format"
)

// InWords describes the planned load.
func (s Shape) InWords() string {
	if s.Arrivals == Poisson {
		even := s
		even.Arrivals = ""
		return even.InWords() + ", Poisson arrivals"
	}
	switch {
	case s.Search != nil:
		return fmt.Sprintf(
			"open loop, the highest rate between %s and %s requests/s that meets the objectives",
			format.Rate(s.Search.From), format.Rate(s.Search.To))
	case len(s.Stages) > 0 && s.OpenLoop():
		return fmt.Sprintf("open loop, %d stages up to %s requests/s", len(s.Stages),
			format.Rate(peak(s.Stages, func(stage Stage) float64 { return stage.Rate })))
	case len(s.Stages) > 0:
		return fmt.Sprintf("closed loop, %d stages up to %.0f users", len(s.Stages),
			peak(s.Stages, func(stage Stage) float64 { return float64(stage.Users) }))
	case s.Rate > 0 && s.Users > 0:
		return fmt.Sprintf("open loop, %s requests/s, at most %d in flight", format.Rate(s.Rate),
			s.Users)
	case s.Rate > 0:
		return fmt.Sprintf("open loop, %s requests/s", format.Rate(s.Rate))
	case s.ThinkTime > 0:
		return fmt.Sprintf("closed loop, %d users with %s between requests", s.Users,
			format.Duration(s.ThinkTime))
	}
	return fmt.Sprintf("closed loop, %d users", s.Users)
}

func peak(stages []Stage, of func(Stage) float64) float64 {
	highest := 0.0
	for _, s := range stages {
		highest = max(highest, of(s))
	}
	return highest
}
