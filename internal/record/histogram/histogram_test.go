package histogram

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// durations draws n values in nanoseconds over the whole range, sub-microsecond and beyond the limits included.
func durations(r *rand.Rand, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(math.Exp(r.Float64()*math.Log(100e9))) - 1
	}
	return values
}

// reference records what Histogram records: microseconds, rounded up, within the limits.
func reference(values []int64) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, 60_000_000, 3)
	for _, ns := range values {
		us := int64(math.Ceil(float64(ns) / 1000))
		if err := h.RecordValue(min(max(us, 1), 60_000_000)); err != nil {
			panic(err)
		}
	}
	return h
}

func TestHistogramEqualsHDR(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		values := durations(r, 1+r.IntN(3000))
		h := new(Histogram)
		for _, ns := range values {
			h.Record(ns)
		}
		b := h.AppendTo(nil)
		var d Distribution
		d.Add(b[:len(b)/2])
		d.Add(b[len(b)/2:])
		want := reference(values)
		us := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
		quantiles := []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1, 1.5, -1}
		for range 50 {
			quantiles = append(quantiles, r.Float64())
		}
		for _, q := range quantiles {
			w := us(want.ValueAtQuantile(q * 100))
			if got := b.Quantile(q); got != w {
				t.Fatalf("round %d: Buckets.Quantile(%v) = %v, HDR has %v", round, q, got, w)
			}
			if got := d.Quantile(q); got != w {
				t.Fatalf("round %d: Distribution.Quantile(%v) = %v, HDR has %v", round, q, got, w)
			}
		}
		if got, w := b.Count(), uint64(want.TotalCount()); got != w || d.Count() != w {
			t.Errorf("Count = %d and %d, HDR has %d", got, d.Count(), w)
		}
		if got, w := b.Max(), us(want.Max()); got != w || d.Max() != w {
			t.Errorf("Max = %v and %v, HDR has %v", got, d.Max(), w)
		}
		w := time.Duration(want.Mean() * 1000)
		if got := b.Mean(); (got-w).Abs() > 2 || (d.Mean()-w).Abs() > 2 {
			t.Errorf("Mean = %v and %v, HDR has %v", got, d.Mean(), w)
		}
	}
}

func TestHistogramRounding(t *testing.T) {
	for _, c := range []struct {
		ns   int64
		want time.Duration
	}{
		{-5, time.Microsecond},
		{0, time.Microsecond},
		{1, time.Microsecond},
		{1000, time.Microsecond},
		{1001, 2 * time.Microsecond},
		{2_046_999, 2047 * time.Microsecond},
		{2_048_000, 2049 * time.Microsecond},
		{int64(time.Minute), 60_030_975 * time.Microsecond},
		{int64(time.Hour), 60_030_975 * time.Microsecond},
	} {
		h := new(Histogram)
		h.Record(c.ns)
		if got := h.AppendTo(nil).Quantile(1); got != c.want {
			t.Errorf("%d ns is kept as %v, want %v", c.ns, got, c.want)
		}
	}
}

func TestHistogramResetLeavesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	h := new(Histogram)
	for range 20 {
		values := durations(r, 200)
		for _, ns := range values {
			h.Record(ns)
		}
		got := h.AppendTo(nil)
		fresh := new(Histogram)
		for _, ns := range values {
			fresh.Record(ns)
		}
		if diff := cmp.Diff(fresh.AppendTo(nil), got); diff != "" {
			t.Fatalf("after Reset (-fresh +reused):\n%s", diff)
		}
		h.Reset()
		if left := h.AppendTo(nil); len(left) != 0 {
			t.Fatalf("Reset left %v", left)
		}
	}
}

func TestHistogramSaturates(t *testing.T) {
	h := new(Histogram)
	h.RecordN(5000, math.MaxUint32)
	h.RecordN(5000, 0)
	h.Record(5000)
	want := Buckets{{Index: 5, Count: math.MaxUint32}}
	if diff := cmp.Diff(want, h.AppendTo(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, Merge(h.AppendTo(nil), Buckets{{5, 7}})); diff != "" {
		t.Error(diff)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := new(Histogram)
	dst := make(Buckets, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		h.Record(123456)
		h.Record(7)
		dst = h.AppendTo(dst[:0])
		h.Reset()
	}); n != 0 {
		t.Errorf("%v allocations per record, snapshot and reset", n)
	}
}

func TestMergeIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		a, b := durations(r, r.IntN(300)), durations(r, r.IntN(300))
		ha, hb, all := new(Histogram), new(Histogram), new(Histogram)
		for _, ns := range a {
			ha.Record(ns)
			all.Record(ns)
		}
		for _, ns := range b {
			hb.Record(ns)
			all.Record(ns)
		}
		left := make(Buckets, 0, r.IntN(700))
		right := hb.AppendTo(nil)
		kept := append(Buckets(nil), right...)
		got := Merge(ha.AppendTo(left), right)
		if want := all.AppendTo(nil); !cmp.Equal(want, got) && len(want)+len(got) > 0 {
			t.Fatalf("merge of %d and %d values (-want +got):\n%s", len(a), len(b), cmp.Diff(want, got))
		}
		if !cmp.Equal(kept, right) {
			t.Fatal("Merge changed its second argument")
		}
	}
}
