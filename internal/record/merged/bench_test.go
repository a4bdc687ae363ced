package merged

import (
	"math/rand/v2"
	"testing"
	"time"

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
