package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthOverloadIsNotThroughput asks a server that performs a command in 2 ms for 1,000 requests/s: it can serve 500/s. What it answers after the planned end
// is no throughput of the planned time.
func TestTruthOverloadIsNotThroughput(t *testing.T) {
	virtually(t, 2*time.Millisecond, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Connections, p.Client.RequestTimeout = 50, 10*time.Second
		p.Shape = plan.Shape{Rate: 1000, Duration: 3 * time.Second}
		o := runPlan(t, p, w.dialled())
		addsUp(t, o)
		series := record.NewSeries(p.Run, time.Now(), p.Interval, p.Operations(), 1)
		for i := range o.intervals {
			if err := series.Add(0, &o.intervals[i]); err != nil {
				t.Fatal(err)
			}
		}
		series.Finish(0)
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
