//go:build integration

package load

import (
	"context"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
	"github.com/redquake/redquake/internal/search"
)

// TestStepsUnderLoad: the rate follows the steps, all that was due is accounted for, and the run ends with the last.
func TestStepsUnderLoad(t *testing.T) {
	for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver} {
		t.Run(string(driver), func(t *testing.T) {
			server := startRedis(t)
			p := testPlan(server.address())
			p.Client.Driver = driver
			p.Shape = plan.Shape{Rate: 1, Duration: time.Minute, Search: &search.Spec{From: 1, To: 10_000, Precision: 0.05, Trial: time.Second}}
			perTenth := map[int64]uint64{}
			var due, done uint64
			last := int64(-1)
			for _, iv := range (&stepped{rates: map[int64]float64{9: 1000, 19: 200, 29: 0}}).run(t, p, 0) {
				if iv.Index != last+1 {
					t.Errorf("interval %d after %d", iv.Index, last)
				}
				last = iv.Index
				for _, op := range iv.Ops {
					perTenth[iv.Index] += op.Due
					due, done = due+op.Due, done+op.OK+op.Fail+op.Unknown+op.Dropped
				}
			}
			// The steps begin at 0.9, 1.9 and 2.9 s.
			if want := uint64(1 + 1000 + 200); due < want-2 || due > want+2 || done != due {
				t.Errorf("%d were due, %d are accounted for; want about %d", due, done, want)
			}
			if perTenth[5] > 1 || perTenth[10] != 100 || perTenth[25] != 20 {
				t.Errorf("%d, %d and %d were due in 0.1 s at 1/s, 1000/s and 200/s", perTenth[5], perTenth[10], perTenth[25])
			}
			if last != 28 {
				t.Errorf("the last interval is %d: the load was to end at 2.9 s", last)
			}
		})
	}
}

// ahead is by how many intervals a rate is told before its first: half a second, which a busy machine may need.
const ahead = 6

// run runs one pod's part of a plan, tells each rate ahead, and returns the intervals.
func (h *stepped) run(t *testing.T, p *plan.Plan, pod int) []*sample.Interval {
	t.Helper()
	r, err := New(p, pod)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var list []*sample.Interval
	err = r.Run(ctx, time.Now().Add(20*time.Millisecond), func(iv *sample.Interval) {
		list = append(list, iv)
		if rate, ok := h.rates[iv.Index+ahead]; ok {
			if err := r.Step(time.Duration(iv.Index+ahead)*p.Interval, rate); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// stepped are the rates of a run, by the interval that they begin with.
type stepped struct{ rates map[int64]float64 }

// TestATrialBeginsWithoutABacklog: 400/s are twice of what can be done, and leave a second of backlog; at 120/s it would take 1.5 s longer than it may.
func TestATrialBeginsWithoutABacklog(t *testing.T) {
	for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver} {
		t.Run(string(driver), func(t *testing.T) {
			p := testPlan(startRedis(t).address())
			p.Client.Driver, p.Client.Connections, p.Client.RequestTimeout = driver, 4, time.Second
			const script = "local a = redis.call('TIME') repeat local b = redis.call('TIME') until (b[1]-a[1])*1000000 + b[2]-a[2] > 5000 return 1"
			p.Workload.Commands = []plan.Command{{Name: "spin", Weight: 1, Words: []string{"EVAL", script, "0"}}} // 200/s, one at a time
			if driver == plan.NativeDriver {
				p.Workload.Commands[0].Words = []string{"PING"}
				p.Client.AddedLatency = 20 * time.Millisecond
			}
			p.Shape = plan.Shape{Rate: 400, Duration: time.Minute, Search: &search.Spec{From: 400, To: 10_000, Precision: 0.05, Trial: time.Second}}
			list := (&stepped{rates: map[int64]float64{25: 120, 60: 0}}).run(t, p, 0)
			var before, after sample.Distribution
			for _, iv := range list {
				switch {
				case iv.Index >= 15 && iv.Index < 25:
					before.Add(iv.Ops[0].Latency)
				case iv.Index >= 45:
					after.Add(iv.Ops[0].Latency)
				}
			}
			t.Logf("p50 %v at 400/s, %v at 120/s", before.Quantile(0.5), after.Quantile(0.5))
			if before.Quantile(0.5) < 500*time.Millisecond || after.Quantile(0.5) > 100*time.Millisecond {
				t.Errorf("p50 is %v at 400/s and %v at 120/s, want about a second and about 20 ms", before.Quantile(0.5), after.Quantile(0.5))
			}
		})
	}
}

// TestAPodWithoutAShareAtFirst: one arrival a second for a hundred pods, then a thousand.
func TestAPodWithoutAShareAtFirst(t *testing.T) {
	for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver} {
		p := testPlan(startRedis(t).address())
		p.Client.Driver, p.Pods = driver, 100
		p.Shape = plan.Shape{Rate: 1, Duration: 20 * time.Second, Search: &search.Spec{From: 1, To: 10_000, Precision: 0.05, Trial: time.Second}}
		list := (&stepped{rates: map[int64]float64{10: 1000, 20: 0}}).run(t, p, 99)
		var ok uint64
		for _, iv := range list {
			for _, op := range iv.Ops {
				ok += op.OK
			}
		}
		if len(list) != 20 || ok < 9 || ok > 11 {
			t.Errorf("%s: %d requests in %d intervals, want 10 in the second second of two", driver, ok, len(list))
		}
	}
}
