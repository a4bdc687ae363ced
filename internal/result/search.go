package result

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// Search is the result of a search for the highest rate. Throughput, errors and latencies of the
// run are those of the trial of that rate.
type Search struct {
	Rate    float64 `json:"rate"` // highest rate that met the objectives, requests/s; 0 = none did
	Done    bool    `json:"done"` // it was completed
	Message string  `json:"message"`
	Trials  []Trial `json:"trials"`

	Tried []search.Trial `json:"-"` // the input from which NewLoad sets Trials
}

// Trial is one rate that was tried, with the figures of its evaluated part.
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

// window returns the part of the run that its figures are about: the best trial; ok is false if no
// trial was evaluated.
func (s *Search) window(plan *plan.Plan) (from, to time.Duration, ok bool) {
	best, ok := search.Best(s.Tried)
	from, to = plan.Shape.Search.Window(best.Rate, best.At)
	return from, to, ok
}

// judged sets Trials to the trials that were evaluated.
func (s *Search) judged(plan *plan.Plan, series *merged.Series) {
	spec := plan.Shape.Search
	for _, t := range s.Tried {
		if !t.Judged {
			continue
		}
		from, to := spec.Window(t.Rate, t.At)
		sum := summary.SummarizeWindow(series, from, to)
		s.Trials = append(s.Trials, Trial{
			Rate: t.Rate, At: Seconds(t.At), Measured: Seconds(sum.Measured), Met: t.Met, Missed: t.Why,
			Throughput: sum.Throughput, ErrorRate: sum.ErrorRate, Latency: quantilesOf(sum.Latency),
		})
		if t.Met {
			s.Trials[len(s.Trials)-1].Missed = ""
		}
	}
}
