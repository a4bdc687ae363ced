package histogram

import (
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
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

func BenchmarkRecord(b *testing.B) {
	values := latencies()
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		h := new(Histogram)
		for i := 0; b.Loop(); i++ {
			h.Record(values[i&1023])
		}
	})
	b.Run("hdrhistogram-go", func(b *testing.B) {
		b.ReportAllocs()
		h := hdrhistogram.New(1, 60_000_000, 3)
		for i := 0; b.Loop(); i++ {
			_ = h.RecordValue(values[i&1023] / 1000)
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	values := latencies()
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		h, g := new(Histogram), new(Histogram)
		for i, v := range values {
			if i%2 == 0 {
				h.Record(v)
			} else {
				g.Record(v)
			}
		}
		x, y := h.AppendTo(nil), g.AppendTo(nil)
		sum := make(Buckets, 0, 4096)
		for b.Loop() {
			sum = Merge(append(sum[:0], x...), y)
		}
	})
	b.Run("hdrhistogram-go", func(b *testing.B) {
		b.ReportAllocs()
		x, y := hdrhistogram.New(1, 60_000_000, 3), hdrhistogram.New(1, 60_000_000, 3)
		for i, v := range values {
			if i%2 == 0 {
				_ = x.RecordValue(v / 1000)
			} else {
				_ = y.RecordValue(v / 1000)
			}
		}
		for b.Loop() {
			x.Merge(y)
		}
	})
}
