package merged

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/intervals"
)

func BenchmarkEncodeSeries(b *testing.B) {
	s := realRun(rand.New(rand.NewPCG(1, 1)), 3*time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Encode(900 << 10); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCopySeries(b *testing.B) {
	s := realRun(rand.New(rand.NewPCG(1, 1)), 3*time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		s.Snapshot()
	}
}

// BenchmarkAdd merges an interval of each of 100 pods into a series.
func BenchmarkAdd(b *testing.B) {
	const pods = 100
	b.ReportAllocs()
	s := New("run", time.Time{}, 100*time.Millisecond, []string{"set", "get"}, pods)
	iv := intervals.Typical()
	iv.Index = 0
	for b.Loop() {
		for pod := range pods {
			if err := s.Add(pod, &iv); err != nil {
				b.Fatal(err)
			}
		}
		iv.Index++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/interval")
}

// BenchmarkAddPulls merges what 1,000 pods deliver: each 20 intervals at once, of ten operations with ten requests each.
func BenchmarkAddPulls(b *testing.B) {
	const pods, pull = 1000, 20
	random := rand.New(rand.NewPCG(1, 1))
	var made [64]record.Interval
	for i := range made {
		made[i] = record.NewInterval(0, 10)
		for k := range made[i].Ops {
			var latency histogram.Histogram
			for range 10 {
				latency.Record(int64(300e3 * math.Exp(0.5*random.NormFloat64())))
			}
			made[i].Ops[k].OK, made[i].Ops[k].Latency = 10, latency.AppendTo(nil)
		}
	}
	names := make([]string, 10)
	b.ReportAllocs()
	for b.Loop() {
		s := New("run", time.Time{}, 100*time.Millisecond, names, pods)
		for pod := range pods {
			for i := range int64(pull) {
				iv := made[random.IntN(len(made))]
				iv.Index = i
				if err := s.Add(pod, &iv); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods*pull), "ns/interval")
}
