package record

import (
	"math/rand/v2"
	"testing"

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
		iv := NewInterval(0, 1)
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
