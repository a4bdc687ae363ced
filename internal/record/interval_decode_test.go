package record

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record/histogram"
)

// TestDecodeAgain decodes different intervals, and invalid ones in between, into the same memory.
func TestDecodeAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var again Interval
	for round := range 200 {
		want := newInterval(int64(round), rng.IntN(4))
		for k := range want.Ops {
			want.Ops[k].Latency = drawn(rng, rng.IntN(100), 300e3, 1)
			want.Ops[k].Waited = drawn(rng, rng.IntN(3), 300e3, 1)
			want.Ops[k].OK, want.Ops[k].Errors[rng.IntN(int(NumClasses))] = rng.Uint64N(1000), rng.Uint64N(2)
		}
		if rng.IntN(3) == 0 {
			want.Gaps, want.Tallies = []Gap{{From: 1, To: 2}}, []uint64{7}
			want.Servers, want.Unobserved, want.Agents = []Server{{At: 5}}, []Unobserved{{"a:1", "INFO: NOPERM"}}, []AgentUse{{At: 5}}
		}
		encoded := AppendInterval(nil, &want)
		if err := again.Decode(encoded[:rng.IntN(len(encoded))]); err == nil {
			t.Fatal("a piece was decoded without an error")
		}
		if err := again.Decode(encoded); err != nil {
			t.Fatal(err)
		}
		if diff := difference(want, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round %d (-want +got)\n%s", round, diff)
		}
	}
}

// drawn is a histogram of some random values around a middle.
func drawn(rng *rand.Rand, values int, middle, spread float64) histogram.Buckets {
	var h histogram.Histogram
	for range values {
		h.Record(int64(middle * math.Exp(spread*rng.NormFloat64())))
	}
	return h.AppendTo(nil)
}

// interval100 is what a pod records of 1,000 requests/s in 100 ms.
func interval100() Interval {
	rng := rand.New(rand.NewPCG(3, 4))
	iv := newInterval(1000, 2)
	iv.Ops[0].Latency, iv.Ops[1].Latency, iv.Probe.Latency = drawn(rng, 10, 300e3, 0.5), drawn(rng, 90, 300e3, 0.5), drawn(rng, 10, 300e3, 0.5)
	iv.FirstOK, iv.LastOK = 100e9, 100.1e9
	return iv
}

func BenchmarkAppendInterval(b *testing.B) {
	b.ReportAllocs()
	iv := interval100()
	var wire []byte
	for b.Loop() {
		wire = AppendInterval(wire[:0], &iv)
	}
	b.SetBytes(int64(len(wire)))
}

func BenchmarkDecodeInterval(b *testing.B) {
	iv := interval100()
	wire := AppendInterval(nil, &iv)
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeInterval(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		var again Interval
		for b.Loop() {
			if err := again.Decode(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}
