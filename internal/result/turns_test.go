package result

import (
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// TestTurnsOfRequests: ten connections send a number of fast requests, then as many slow ones. Each has the throughput
// of its own time, wherever the turn changes within the intervals, and whatever the requests took.
func TestTurnsOfRequests(t *testing.T) {
	t.Parallel()
	const connections = 10
	for _, c := range []struct {
		name       string
		each       int
		fast, slow time.Duration
		think      time.Duration
		step       time.Duration
	}{
		{"both within one interval", 2_000, 100 * time.Microsecond, 2 * time.Millisecond, 0, time.Second},
		{"the border is in the first interval", 40_000, 100 * time.Microsecond, 2 * time.Millisecond, 0, time.Second},
		{"a coarse record", 400_000, 100 * time.Microsecond, 2 * time.Millisecond, 0, 20 * time.Second},
		{"users who think", 500, 100 * time.Microsecond, 2 * time.Millisecond, 5 * time.Millisecond, time.Second},
	} {
		s := merged.New("run", time.Unix(0, 0), c.step, []string{"ping", "lrange_600"}, 1)
		at, left := time.Duration(0), [2]int{c.each, c.each}
		var iv *record.Interval
		finish := func() {
			if iv == nil {
				return
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
			iv = nil
		}
		var last time.Duration
		for left[1] > 0 {
			if i := int64(at / c.step); iv == nil || iv.Index != i {
				finish()
				iv = &record.Interval{
					Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstOK: int64(at), LastOK: int64(at), FirstError: -1, LastError: -1,
				}
			}
			k, took := 0, c.fast
			if left[0] == 0 {
				k, took = 1, c.slow
			}
			// Ten requests at once, or as many of them as fit until the interval ends.
			n := min(left[k]/connections, max(1, int((time.Duration(iv.Index+1)*c.step-at)/(took+c.think))))
			left[k] -= n * connections
			at += time.Duration(n) * (took + c.think)
			last = at - c.think
			op := &iv.Ops[k]
			op.OK += uint64(n * connections)
			op.Sent = op.OK
			var h histogram.Histogram
			h.RecordN(int64(took), uint32(n*connections))
			op.Latency = h.AppendTo(op.Latency)
			iv.LastOK = min(int64(last), (iv.Index+1)*int64(c.step)-1)
		}
		finish()
		s.Finish(0)
		p := &plan.Plan{
			Pods:     1,
			Target:   plan.Target{Addresses: []string{"a:1"}},
			Shape:    plan.Shape{Users: connections, Requests: uint64(2 * c.each), ThinkTime: c.think},
			Workload: plan.Workload{Benchmark: &plan.Benchmark{Tests: []string{"ping", "lrange_600"}, Order: plan.InTurn}},
		}
		got := NewLoad(p, s, LoadInput{Outcome: Finished})
		for k, took := range []time.Duration{c.fast, c.slow} {
			want := connections / (took + c.think).Seconds()
			if o := got.Operations[k]; o.OK != uint64(c.each) || math.Abs(o.Throughput/want-1) > 0.03 {
				t.Errorf("%s: %s: %d requests, %.0f/s in %v, want %d, %.0f/s", c.name, o.Name, o.OK, o.Throughput, *o.Sent, c.each,
					want)
			}
		}
	}
}
