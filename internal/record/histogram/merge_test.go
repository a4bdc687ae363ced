package histogram

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// draw makes a histogram of n random values around a mean.
func draw(rng *rand.Rand, values int, middle, spread float64) Buckets {
	var h Histogram
	for range values {
		h.Record(int64(middle * math.Exp(spread*rng.NormFloat64())))
	}
	return h.AppendTo(nil)
}

// TestMergeOfAnyLengths compares Merge with adding cell by cell, for few and many cells on either side, with and
// without room in a.
func TestMergeOfAnyLengths(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		a := draw(rng, rng.IntN(3000), 300e3, rng.Float64())
		b := draw(rng, rng.IntN(300), 300e3*math.Exp(2*rng.Float64()-1), 2*rng.Float64())
		if round%7 == 0 && len(a) > 0 {
			a[rng.IntN(len(a))].Count = math.MaxUint32 - 1
		}
		want := map[uint16]uint32{}
		for _, list := range []Buckets{a, b} {
			for _, c := range list {
				want[c.Index] = addSaturated(want[c.Index], c.Count)
			}
		}
		if round%2 == 0 {
			a = slices.Grow(a, rng.IntN(400))
		}
		kept := slices.Clone(b)
		got := Merge(a, b)
		if diff := cmp.Diff(kept, b); diff != "" {
			t.Fatalf("b was changed (-want +got)\n%s", diff)
		}
		if len(got) != len(want) {
			t.Fatalf("%d cells, want %d", len(got), len(want))
		}
		for i, c := range got {
			if i > 0 && got[i-1].Index >= c.Index || want[c.Index] != c.Count {
				t.Fatalf("cell %d is %+v, want count %d", i, c, want[c.Index])
			}
		}
	}
}

// BenchmarkMergeMany merges one interval of each of many pods, as the operator does: 100 requests of each.
func BenchmarkMergeMany(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := make([]Buckets, 1000)
	for i := range parts {
		parts[i] = draw(rng, 100, 300e3, 0.5)
	}
	for _, pods := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d pods", pods), func(b *testing.B) {
			b.ReportAllocs()
			sum := make(Buckets, 0, 4096)
			for b.Loop() {
				sum = sum[:0]
				for _, part := range parts[:pods] {
					sum = Merge(sum, part)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/merge")
		})
	}
}
