package record_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/intervals"
)

// TestDecodeAgain decodes different intervals, and invalid ones in between, into the same memory.
func TestDecodeAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var again record.Interval
	for round := range 200 {
		want := record.NewInterval(int64(round), rng.IntN(4))
		for k := range want.Ops {
			want.Ops[k].Latency = intervals.Draw(rng, rng.IntN(100), 300e3, 1)
			want.Ops[k].Waited = intervals.Draw(rng, rng.IntN(3), 300e3, 1)
			want.Ops[k].OK, want.Ops[k].Errors[rng.IntN(int(record.NumClasses))] = rng.Uint64N(1000), rng.Uint64N(2)
		}
		if rng.IntN(3) == 0 {
			want.Gaps, want.Tallies = []record.Gap{{From: 1, To: 2}}, []uint64{7}
			want.Servers = []record.Server{{At: 5}}
			want.Unobserved = []record.Unobserved{{Address: "a:1", Reason: "INFO: NOPERM"}}
			want.Agents = []record.AgentUse{{At: 5}}
		}
		encoded := record.AppendInterval(nil, &want)
		if err := again.Decode(encoded[:rng.IntN(len(encoded))]); err == nil {
			t.Fatal("a piece was decoded without an error")
		}
		if err := again.Decode(encoded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round %d (-want +got)\n%s", round, diff)
		}
	}
}

func BenchmarkAppendInterval(b *testing.B) {
	b.ReportAllocs()
	iv := intervals.Typical()
	var wire []byte
	for b.Loop() {
		wire = record.AppendInterval(wire[:0], &iv)
	}
	b.SetBytes(int64(len(wire)))
}

func BenchmarkDecodeInterval(b *testing.B) {
	iv := intervals.Typical()
	wire := record.AppendInterval(nil, &iv)
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := record.DecodeInterval(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		var again record.Interval
		for b.Loop() {
			if err := again.Decode(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}
