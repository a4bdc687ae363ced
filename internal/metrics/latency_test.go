package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/redquake/redquake/internal/record/histogram"
)

// Both forms of the histogram are those that client_golang makes of the single values, apart from values within 0.1% or
// 1 us below a bound.
func TestLatenciesAreThoseOfPrometheus(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	of := map[string]func() time.Duration{
		"the whole range": func() time.Duration { return time.Duration(math.Exp(random.Float64()*math.Log(60e6)) * 1e3) },
		"a server": func() time.Duration {
			return 200*time.Microsecond + time.Duration(random.ExpFloat64()*float64(300*time.Microsecond))
		},
		"on bounds": func() time.Duration { return time.Duration(classicBounds[random.IntN(len(classicBounds))] * 1e9) },
	}
	for name, next := range of {
		t.Run(name, func(t *testing.T) {
			want := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name:                        "x",
				Buckets:                     classicBounds[:],
				NativeHistogramBucketFactor: 1.1,
			})
			upper := prometheus.NewHistogram(prometheus.HistogramOpts{
				Name:                        "x",
				Buckets:                     classicBounds[:],
				NativeHistogramBucketFactor: 1.1,
			})
			var h histogram.Histogram
			const n = 100_000
			for range n {
				d := next()
				h.Record(int64(d))
				want.Observe(d.Seconds())
				// As far as a value may be counted too high.
				upper.Observe((time.Duration(float64(d)*(1+1./1024)) + time.Microsecond).Seconds())
			}
			var l latencies
			l.add(h.AppendTo(nil))
			metric, err := l.metric(loadLatency.desc, time.Now(), "shop", "cache", "get")
			if err != nil {
				t.Fatal(err)
			}
			got, least, most := written(t, metric), written(t, upper), written(t, want)
			if got.GetSampleCount() != n || math.Abs(got.GetSampleSum()/most.GetSampleSum()-1) > 0.005 {
				t.Errorf("count %d, sum %v; want %d, %v", got.GetSampleCount(), got.GetSampleSum(), n, most.GetSampleSum())
			}
			if got.GetSchema() != most.GetSchema() {
				t.Fatalf("schema %d, want %d", got.GetSchema(), most.GetSchema())
			}
			for i, b := range got.Bucket {
				if c := b.GetCumulativeCount(); c < least.Bucket[i].GetCumulativeCount() ||
					c > most.Bucket[i].GetCumulativeCount() {
					t.Errorf("%d values up to %v, want between %d and %d", c, b.GetUpperBound(), least.Bucket[i].GetCumulativeCount(),
						most.Bucket[i].GetCumulativeCount())
				}
			}
			has, low, high := cumulative(got), cumulative(least), cumulative(most)
			for i := range has {
				if has[i] < low[i] || has[i] > high[i] {
					t.Errorf("%d values up to 2^(%d/8), want between %d and %d", has[i], i+firstCounted, low[i], high[i])
				}
			}
			if has[len(has)-1] != n {
				t.Errorf("%d values in the native histogram, want %d", has[len(has)-1], n)
			}
		})
	}
}

func written(t *testing.T, metric prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := metric.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Histogram
}

const firstCounted = -200 // of 30 ns

// cumulative are the counts of a native histogram up to the bounds 2^(i/8) s, from 30 ns to 70 s.
func cumulative(h *dto.Histogram) []int64 {
	single := map[int]int64{}
	at, count, k := 0, int64(0), 0
	for _, span := range h.PositiveSpan {
		at += int(span.GetOffset())
		for range span.GetLength() {
			count += h.PositiveDelta[k]
			single[at] = count
			at, k = at+1, k+1
		}
	}
	var all []int64
	sum := int64(0)
	for i := firstCounted; i <= 49; i++ {
		sum += single[i]
		all = append(all, sum)
	}
	return all
}

// The bounds of a bucket belong to it, also where a logarithm is not exact.
func TestBoundsOfNativeBuckets(t *testing.T) {
	for i, p := range places() {
		if i == 0 {
			continue
		}
		v := histogram.Bucket{Index: uint16(i)}.Highest().Seconds()
		if low, high := math.Exp2((firstNative+float64(p.native)-1)/8),
			math.Exp2((firstNative+float64(p.native))/8); v <= low*(1-1e-12) || v > high*(1+1e-12) {
			t.Fatalf("cell %d, up to %v s, is in the bucket from %v to %v", i, v, low, high)
		}
	}
}

func TestNoLatencies(t *testing.T) {
	var l latencies
	l.add(nil)
	metric, err := l.metric(loadLatency.desc, time.Now(), "shop", "cache", "get")
	if err != nil {
		t.Fatal(err)
	}
	if h := written(t, metric); h.GetSampleCount() != 0 || len(h.Bucket) != len(classicBounds) ||
		h.GetSchema() != nativeSchema {
		t.Errorf("%+v", h)
	}
}
