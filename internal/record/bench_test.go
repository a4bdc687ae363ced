package record

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/redquake/redquake/internal/record/histogram"
)

// latencies draws typical latencies of one interval: 200 us to 2 ms.
func latencies() []int64 {
	r := rand.New(rand.NewPCG(1, 1))
	values := make([]int64, 1024)
	for i := range values {
		values[i] = 200_000 + r.Int64N(1_800_000)
	}
	return values
}

// BenchmarkSnapshot encodes the recorded values and resets the histogram, as at the end of each interval.
func BenchmarkSnapshot(b *testing.B) {
	values := latencies()
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		h := new(histogram.Histogram)
		iv := newInterval(0, 1)
		var cells histogram.Buckets
		var wire []byte
		for b.Loop() {
			for _, v := range values[:100] {
				h.Record(v)
			}
			cells = h.AppendTo(cells[:0])
			iv.Ops[0].Latency = cells
			wire = AppendInterval(wire[:0], &iv)
			h.Reset()
		}
		b.ReportMetric(float64(len(wire)), "wire-bytes")
	})
	b.Run("hdrhistogram-go", func(b *testing.B) {
		b.ReportAllocs()
		h := hdrhistogram.New(1, 60_000_000, 3)
		var wire []byte
		for b.Loop() {
			for _, v := range values[:100] {
				_ = h.RecordValue(v / 1000)
			}
			wire, _ = h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
			h.Reset()
		}
		b.ReportMetric(float64(len(wire)), "wire-bytes")
	})
}

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
	s := NewSeries("run", time.Time{}, 100*time.Millisecond, []string{"set", "get"}, pods)
	iv := interval100()
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
