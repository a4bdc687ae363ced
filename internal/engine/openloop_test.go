package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/histogram"
)

// TestOpenLoopLatencyFollowsTheSchedule stops the server for 1 s in every 10 s. Arrivals of the schedule that fall into
// a stop wait for its end, and then for those before them; all others for their own command alone. So every latency
// follows from the schedule, and the distribution has to be that one. A load that waits for a reply before it counts
// the next request would show a p99 of below 1 ms.
func TestOpenLoopLatencyFollowsTheSchedule(t *testing.T) {
	const (
		rate, cost = 2000, 100 * time.Microsecond
		length     = 20 * time.Second
	)
	type stop struct{ from, to time.Duration }
	stops := []stop{{4 * time.Second, 5 * time.Second}, {14 * time.Second, 15 * time.Second}}
	virtually(t, cost, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Connections, p.Client.RequestTimeout = 50, 5*time.Second
		p.Shape = plan.Shape{Rate: rate, Duration: length}
		r := prepared(t, p, w.dialled())
		start, wait := inBackground(t, t.Context(), r)
		for _, s := range stops {
			time.Sleep(time.Until(start.Add(s.from)))
			w.server.Stop()
			time.Sleep(time.Until(start.Add(s.to)))
			w.server.Continue()
		}
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		var want histogram.Histogram
		var free time.Duration // when the server has performed all before
		for i := range int(rate * length / time.Second) {
			due := time.Second / rate * time.Duration(2*i+1) / 2
			begins := max(due, free)
			for _, s := range stops {
				if s.from <= begins && begins < s.to {
					begins = s.to
				}
			}
			free = begins + cost
			want.Record(int64(free - due))
		}
		expected := want.AppendTo(nil)
		if diff := cmp.Diff(expected, o.sum.Latency); diff != "" || o.sum.OK != 40_000 || o.sum.Due != 40_000 {
			t.Errorf("%s\nby the schedule p50 %s p99 %s max %s", describe(o), expected.Quantile(0.5), expected.Quantile(0.99),
				expected.Max())
		}
		// The service time has the stop once per connection, and the waiting for one not at all: 50 commands at most are
		// before a request at the server.
		if p95 := o.sum.Service.Quantile(0.95); p95 > 51*cost { // one more for the resolution of the histogram
			t.Errorf("the service time's p95 is %s", p95)
		}
	})
}
