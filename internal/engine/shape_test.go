package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/anomaly"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthOverloadIsNotThroughput asks a server that performs a command in 2 ms for 1,000 requests/s: it can serve
// 500/s. What it answers after the planned end is no throughput of the planned time.
func TestTruthOverloadIsNotThroughput(t *testing.T) {
	virtually(t, 2*time.Millisecond, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Connections, p.Client.RequestTimeout = 50, 10*time.Second
		p.Shape = plan.Shape{Rate: 1000, Duration: 3 * time.Second}
		o := runPlan(t, p, w.dialled())
		addsUp(t, o)
		series := seriesOf(t, p, o)
		r := result.NewLoad(p, series, result.LoadInput{Outcome: result.Finished})
		truth.Report(t, "T6", "1,000 requests/s asked, 500/s served, for 3 s", "499.7/s, 1,501 answered after the end",
			fmt.Sprintf("%.1f/s, %d answered after the end", r.Total.Throughput, r.Total.Drained),
			// The first arrival is due after 0.5 ms, so its reply and those after it come at 2.5 ms, 4.5 ms, ...
			r.Total.OK == 3000 && r.Total.Drained == 1501 && fmt.Sprintf("%.1f", r.Total.Throughput) == "499.7")
		var drained uint64
		for _, one := range r.Operations {
			drained += one.Drained
		}
		if drained != r.Total.Drained || r.Trend == "" {
			t.Errorf("the operations drained %d, the total is %d", drained, r.Total.Drained)
		}
	})
}

// TestNoMoreThanOffered sends a fixed number of arrivals at a rate: each has a time of its own, and the load lasts
// until that of the last one is over, not until its reply. The same holds for a load that is interrupted.
func TestNoMoreThanOffered(t *testing.T) {
	for _, tc := range []struct {
		rate     float64
		requests uint64
		warmUp   time.Duration
	}{{10, 1, 0}, {10, 2, 0}, {10, 5, 0}, {10, 50, 0}, {1, 1, 0}, {10, 50, 2 * time.Second}, {1000, 1000, 0}} {
		t.Run(fmt.Sprintf("%d at %g after %s", tc.requests, tc.rate, tc.warmUp), func(t *testing.T) {
			virtually(t, 100*time.Microsecond, func(t *testing.T, w *world) {
				p := bare()
				p.Shape = plan.Shape{Rate: tc.rate, Requests: tc.requests, WarmUp: tc.warmUp}
				series := seriesOf(t, p, runPlan(t, p, w.dialled()))
				for _, outcome := range []result.Outcome{result.Finished, result.Interrupted} {
					r := result.NewLoad(p, series, result.LoadInput{Outcome: outcome})
					took := float64(tc.requests) / tc.rate
					if r.Total.Throughput > tc.rate+1e-9 || r.Total.Throughput < 0.99*tc.rate ||
						math.Abs(r.Elapsed.Seconds()-took) > 1e-6 {
						t.Errorf("%d requests at %g/s after %s, %s: %.2f/s in %.3f s, want %g/s in %.3f s", tc.requests, tc.rate,
							tc.warmUp, outcome, r.Total.Throughput, r.Elapsed.Seconds(), tc.rate, took)
					}
				}
			})
		})
	}
}

// seriesOf is the record of a run of one pod.
func seriesOf(t *testing.T, p *plan.Plan, o *outcome) *merged.Series {
	t.Helper()
	series := merged.New(p.Run, time.Now(), p.Interval, p.Operations(), 1)
	series.SetReadOnly(p.ReadOnly())
	for i := range o.intervals {
		if err := series.Add(0, &o.intervals[i]); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	return series
}

// TestTruthStagesAreNoImpact: the rate of a load rises by stages, holds, and halves within a second, 5 s after an
// instant at which nothing happens.
func TestTruthStagesAreNoImpact(t *testing.T) {
	virtually(t, 100*time.Microsecond, func(t *testing.T, w *world) {
		p := bare()
		p.Shape = plan.Shape{Stages: []plan.Stage{
			{Duration: 5 * time.Second, Rate: 400},
			{Duration: 20 * time.Second, Rate: 400},
			{Duration: time.Second, Rate: 200},
			{Duration: 19 * time.Second, Rate: 200},
		}}
		series := seriesOf(t, p, runPlan(t, p, w.dialled()))
		planned := p.Shape.Planned()
		for name, at := range map[string]time.Duration{
			"on the level before a fall": 20 * time.Second,
			"within the ramp":            3 * time.Second,
			"within the fall":            25500 * time.Millisecond,
		} {
			m := impact.Analyze(series, impact.Fault{At: at, Deadline: 20 * time.Second}, impact.Options{
				Planned:         planned,
				BaselineMinimum: time.Second,
			})
			truth.Report(t, "T8", "stages of 400/s and 200/s, a harmless fault "+name, "recovered after 0s, dip below 2 %, []",
				fmt.Sprintf("recovered after %s, dip %.1f %%, %v", m.RecoveryTime.Value, 100*m.Dips.All, m.Doubts),
				m.Recovered && m.RecoveryTime.Value == 0 && m.Dips.All < 0.02 && len(m.Doubts) == 0)
		}
		for _, length := range []time.Duration{3 * time.Second, 20 * time.Second} {
			if ok, why := throughput.Steady(series, length, 0, planned); !ok {
				t.Error(why)
			}
		}
		if found := anomaly.Anomalies(series, 0, planned, nil); len(found) > 0 {
			t.Errorf("anomalies %+v", found)
		}
	})
}
