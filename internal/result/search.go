package result

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Search is what a search for the highest rate came to. Throughput, errors and latencies of the run are of the trial of that rate.
type Search struct {
	Rate    float64 `json:"rate"` // highest rate that met the objectives, requests/s; 0 = none did
	Done    bool    `json:"done"` // it came to its end
	Message string  `json:"message"`
	Trials  []Trial `json:"trials"`

	Tried []search.Trial `json:"-"` // what was tried; NewLoad makes Trials of it
}

// Trial is one rate that was tried, by the judged part of its time.
type Trial struct {
	Rate       float64    `json:"rate"`
	At         Seconds    `json:"atSeconds"` // since the load's start
	Measured   Seconds    `json:"measuredSeconds"`
	Met        bool       `json:"met"`
	Missed     string     `json:"missed,omitempty"`
	Throughput float64    `json:"throughput"`
	ErrorRate  float64    `json:"errorRate"`
	Latency    *Quantiles `json:"latency,omitempty"`
}

// window is the stretch of the run that its figures are of: the trial of the rate that was found; ok is false where none was.
func (s *Search) window(plan *plan.Plan) (from, to time.Duration, ok bool) {
	best, ok := search.Best(s.Tried)
	from, to = plan.Shape.Search.Window(best)
	return from, to, ok
}

// judged fills in the trials that were judged.
func (s *Search) judged(plan *plan.Plan, series *record.Series) {
	spec := plan.Shape.Search
	for _, t := range s.Tried {
		if !t.Judged {
			continue
		}
		from, to := spec.Window(t)
		sum := impact.SummarizeWindow(series, from, to)
		s.Trials = append(s.Trials, Trial{
			Rate: t.Rate, At: Seconds(t.At), Measured: Seconds(sum.Measured), Met: t.Met, Missed: t.Why,
			Throughput: sum.Throughput, ErrorRate: sum.ErrorRate, Latency: quantilesOf(sum.Latency),
		})
		if t.Met {
			s.Trials[len(s.Trials)-1].Missed = ""
		}
	}
}
