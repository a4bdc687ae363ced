package summary

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

func TestSummarize(t *testing.T) {
	s := merged.New("run", time.Unix(0, 0), step, []string{"get", "set"}, 1)
	for i := range int64(50) {
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 2), MaxLag: 1000 * i}
		get, set := &iv.Ops[0], &iv.Ops[1]
		get.OK, get.BytesIn, get.BytesOut = 80, 800, 160
		get.Latency = histogram.Buckets{{Index: 100, Count: 72}, {Index: 1000, Count: 8}}
		set.OK, set.Fail, set.Unknown, set.Dropped = 10, 4, 3, 3
		set.Errors[record.ClassOOM], set.Errors[record.ClassTimeout] = 4, 3
		set.Latency = histogram.Buckets{{Index: 2000, Count: 10}}
		set.Service = histogram.Buckets{{Index: 50, Count: 10}}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	us := time.Microsecond
	got := Summarize(s, 1950*ms) // the first whole interval begins at 2 s: 30 intervals
	classes := [record.NumClasses]uint64{record.ClassOOM: 120, record.ClassTimeout: 90}
	service := Latency{
		P50: 50 * us, P90: 50 * us, P95: 50 * us, P99: 50 * us, P999: 50 * us, P9999: 50 * us, Max: 50 * us, Mean: 50 * us,
		Count: 300,
	}
	want := Summary{
		Measured: 3 * time.Second, MaxLag: 49 * us,
		Figures: Figures{
			Requests:   3000,
			OK:         2700,
			Fail:       120,
			Unknown:    90,
			Dropped:    90,
			ByClass:    classes,
			ErrorRate:  0.1,
			Throughput: 900,
			BytesIn:    24000,
			BytesOut:   4800,
			// 90 per interval: 72 of 100 us, 8 of 1000 us, 10 of 2000 us; the last are shown as 2000 us: cells are 1 us wide up
			// to 2047 us.
			Latency: Latency{
				P50: 100 * us, P90: 2000 * us, P95: 2000 * us, P99: 2000 * us, P999: 2000 * us, P9999: 2000 * us, Max: 2000 * us,
				Mean:  391111 * time.Nanosecond,
				Count: 2700,
			},
			Service: service,
		},
		Operations: []Operation{
			{"get", Figures{
				Requests: 2400, OK: 2400, Throughput: 800, BytesIn: 24000, BytesOut: 4800,
				Latency: Latency{
					P50: 100 * us, P90: 100 * us, P95: 1000 * us, P99: 1000 * us, P999: 1000 * us, P9999: 1000 * us, Max: 1000 * us,
					Mean: 190 * us, Count: 2400,
				},
			}},
			{
				"set",
				Figures{
					Requests:   600,
					OK:         300,
					Fail:       120,
					Unknown:    90,
					Dropped:    90,
					ByClass:    classes,
					ErrorRate:  0.5,
					Throughput: 100,
					Latency: Latency{
						P50: 2000 * us, P90: 2000 * us, P95: 2000 * us, P99: 2000 * us, P999: 2000 * us, P9999: 2000 * us, Max: 2000 * us,
						Mean: 2000 * us, Count: 300,
					},
					Service: service,
				},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-6 })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// 2700 successes in 2.95 s.
	if got := SummarizeTo(s, 1950*ms, 4950*ms); got.Measured != 2950*ms || math.Abs(got.Throughput-2700/2.95) > 1e-6 ||
		got.OK != 2700 {
		t.Errorf("up to 4.95 s: measured %s, %.3f/s, %d", got.Measured, got.Throughput, got.OK)
	}
	if got := Summarize(s, time.Hour); got.Requests != 0 || got.Measured != 0 || got.Throughput != 0 {
		t.Errorf("nothing measured: %+v", got)
	}
}
