package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/truth"
)

// The probe's rate is that of the run: it does not grow with the pods, and still sees an outage of 100 ms.
func TestTruthProbeRateIsOfTheRun(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		const pods = 10
		p := testPlan(virtualAddress)
		p.Pods, p.Info, p.Workload.Commands = pods, 0, p.Workload.Commands[1:]
		p.Shape = plan.Shape{Rate: 1000, Duration: 3 * time.Second}
		start := time.Now().Add(time.Second)
		series := merged.New("r", start, p.Interval, p.Operations(), pods)
		var mu sync.Mutex
		var all sync.WaitGroup
		var due uint64
		for pod := range pods {
			r, err := New(p, pod, w.dialled())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Prepare(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := r.Run(t.Context(), start, func(iv *record.Interval) {
					mu.Lock()
					defer mu.Unlock()
					due += iv.Probe.Due
					if err := series.Add(pod, iv); err != nil {
						t.Error(err)
					}
				}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Until(start.Add(time.Second)))
		w.server.Stop()
		time.Sleep(100 * time.Millisecond)
		w.server.Continue()
		all.Wait()
		var outage time.Duration
		for _, g := range series.ProbeGaps() {
			outage = max(outage, time.Duration(g.To-g.From))
		}
		truth.Report(t, "T10", "the probe of 10 pods, an outage of 100 ms", "300 requests in 3 s, outage 100 to 110 ms",
			fmt.Sprintf("%d requests, outage %s", due, outage),
			due == 300 && outage >= 100*time.Millisecond && outage <= 110*time.Millisecond)
	})
}
