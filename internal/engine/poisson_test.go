package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// TestPoissonArrivalsAreSent: event loops and go-redis send exactly the arrivals of the schedule, each at its instant.
func TestPoissonArrivalsAreSent(t *testing.T) {
	for name, change := range map[string]func(*plan.Plan){
		"loops":   func(p *plan.Plan) { p.Client.Connections = 200 },
		"GoRedis": func(p *plan.Plan) { p.Client.Driver = plan.GoRedisDriver },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, time.Microsecond, func(t *testing.T, w *world) {
				p := bare()
				p.Shape = plan.Shape{Rate: 2000, Duration: 3 * time.Second, Arrivals: plan.Poisson}
				p.Workload.Seed = 9
				change(p)
				r := prepared(t, p, w.dialled())
				var want []uint64
				pacer := r.run.Pacer.Load()
				for i := range int64(30) {
					from, to := i*int64(p.Interval), (i+1)*int64(p.Interval)
					want = append(want, uint64(pacer.Arrivals(to)-pacer.Arrivals(from)))
				}
				o, sink := collect(t)
				if err := r.Run(t.Context(), time.Now(), sink); err != nil {
					t.Fatal(err)
				}
				addsUp(t, o)
				var due []uint64
				for i := range o.intervals {
					n := uint64(0)
					for op := range o.intervals[i].Ops {
						n += o.intervals[i].Ops[op].Due
					}
					due = append(due, n)
				}
				if !slices.Equal(due, want) || o.sum.OK != o.sum.Due || slices.Max(due) == slices.Min(due) {
					t.Errorf("%d were due in each 0.1 s, want %d; %s", due, want, describe(o))
				}
				if o.maxLag > int64(time.Millisecond) {
					t.Errorf("requests were sent %s late", time.Duration(o.maxLag))
				}
			})
		})
	}
}
