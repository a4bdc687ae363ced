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
		if got.Used() != len(want) {
			t.Fatalf("%d cells, want %d", got.Used(), len(want))
		}
		for i, c := range got {
			if i > 0 && got[i-1].Index >= c.Index || want[c.Index] != c.Count {
				t.Fatalf("cell %d is %+v, want count %d", i, c, want[c.Index])
			}
		}
	}
}

// TestSumsOfMany compares sums of many histograms with adding cell by cell. They may have empty cells, as many as others at
// most, and none at the ends.
func TestSumsOfMany(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		var sum Buckets
		want := map[uint16]uint32{}
		middle, spread, empty := 50e3*math.Exp(5*rng.Float64()), rng.Float64(), 0
		for range 1 + rng.IntN(300) {
			part := draw(rng, rng.IntN(40), middle*math.Exp(rng.Float64()), spread)
			if rng.IntN(9) == 0 { // a sum as well
				part = Merge(slices.Clone(sum), part)
			}
			for _, c := range part {
				if c.Count > 0 {
					want[c.Index] = addSaturated(want[c.Index], c.Count)
				}
			}
			sum = Merge(sum, part)
		}
		for i, c := range sum {
			if i > 0 && sum[i-1].Index >= c.Index || want[c.Index] != c.Count {
				t.Fatalf("round %d: cell %d is %+v, want count %d", round, i, c, want[c.Index])
			}
			if c.Count == 0 {
				empty++
			}
		}
		if n := len(sum); sum.Used() != len(want) || empty > len(want) || n > 0 && (sum[0].Count == 0 || sum[n-1].Count == 0) {
			t.Fatalf("round %d: %d cells, of which %d are empty, want %d", round, n, empty, len(want))
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
			for b.Loop() {
				var sum Buckets
				for _, part := range parts[:pods] {
					sum = Merge(sum, part)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/merge")
		})
	}
}
