package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

var bothDrivers = []plan.Driver{plan.NativeDriver, plan.GoRedisDriver}

// TestStepsUnderLoad: the rate follows the steps, all due arrivals are served, and the run ends with the last.
func TestStepsUnderLoad(t *testing.T) {
	for _, driver := range bothDrivers {
		t.Run(string(driver), func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				p.Client.Driver = driver
				p.Shape = plan.Shape{
					Rate:     1,
					Duration: time.Minute,
					Search:   &plan.Search{From: 1, To: 10_000, Precision: 0.05, Trial: time.Second},
				}
				o := w.stepped(t, p, 0, map[int64]float64{9: 1000, 19: 200, 29: 0})
				// 1/s from 0.5 s on, 1000/s from 0.9 s and 200/s from 1.9 s on; the last interval is the one that ends at 2.9 s.
				want := slices.Concat(repeated(0, 5), repeated(1, 1), repeated(0, 3), repeated(100, 10), repeated(20, 10))
				if got := o.perInterval(0, len(o.intervals), succeeded); !slices.Equal(got, want) || o.sum.Due != o.sum.OK {
					t.Errorf("%d in each 0.1 s, want %d; %s", got, want, describe(o))
				}
			})
		})
	}
}

// stepped runs one pod's part of a plan, and sets each rate half a second before the interval that it begins with.
func (w *world) stepped(t *testing.T, p *plan.Plan, pod int, rates map[int64]float64) *outcome {
	t.Helper()
	const ahead = 6
	r, err := New(p, pod, w.dialled())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o, sink := collect(t)
	err = r.Run(t.Context(), time.Now().Add(20*time.Millisecond), func(iv *record.Interval) {
		sink(iv)
		if rate, ok := rates[iv.Index+ahead]; ok {
			if err := r.Step(time.Duration(iv.Index+ahead)*p.Interval, rate); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTrialStartsWithoutBacklog: 400/s is twice the server's capacity and leaves a backlog, which at 120/s would take
// longer to process than the trial lasts.
func TestTrialStartsWithoutBacklog(t *testing.T) {
	for _, driver := range bothDrivers {
		t.Run(string(driver), func(t *testing.T) {
			virtually(t, 5*time.Millisecond, func(t *testing.T, w *world) {
				p := bare()
				p.Client.Driver, p.Client.Connections, p.Client.RequestTimeout = driver, 4, time.Second
				p.Shape = plan.Shape{
					Rate:     400,
					Duration: time.Minute,
					Search:   &plan.Search{From: 400, To: 10_000, Precision: 0.05, Trial: time.Second},
				}
				o := w.stepped(t, p, 0, map[int64]float64{25: 120, 60: 0})
				var before, after histogram.Distribution
				for _, iv := range o.intervals {
					for _, op := range iv.Ops {
						switch {
						case iv.Index >= 15 && iv.Index < 25:
							before.Add(op.Latency)
						case iv.Index >= 26:
							after.Add(op.Latency)
						}
					}
				}
				// At 400/s half of the arrivals wait until they time out, after a second. At 120/s none waits for another one.
				if before.Quantile(0.5) < 750*time.Millisecond ||
					after.Quantile(0.99).Round(100*time.Microsecond) != 5*time.Millisecond {
					t.Errorf("p50 is %v at 400/s, p99 %v at 120/s", before.Quantile(0.5), after.Quantile(0.99))
				}
				due := total(o.perInterval(25, 60, func(c *record.Counts) uint64 { return c.Due }))
				if lost := total(o.perInterval(26, 60, notDone)); due != 420 || lost > 0 {
					t.Errorf("%d were due in 3.5 s at 120/s, %d of them were lost", due, lost)
				}
			})
		})
	}
}

// TestPodWithoutArrivalsAtFirst: one arrival a second for a hundred pods, then a thousand.
func TestPodWithoutArrivalsAtFirst(t *testing.T) {
	for _, driver := range bothDrivers {
		t.Run(string(driver), func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				p.Client.Driver, p.Pods = driver, 100
				p.Shape = plan.Shape{
					Rate:     1,
					Duration: 20 * time.Second,
					Search:   &plan.Search{From: 1, To: 10_000, Precision: 0.05, Trial: time.Second},
				}
				o := w.stepped(t, p, 99, map[int64]float64{10: 1000, 20: 0})
				if got, want := o.perInterval(0, len(o.intervals), succeeded),
					append(repeated(0, 10), repeated(1, 10)...); !slices.Equal(got, want) {
					t.Errorf("%d in each 0.1 s, want %d", got, want)
				}
			})
		})
	}
}
