package record

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

func TestIntervalRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	dst := []byte("kept")
	for _, iv := range append(podIntervals(r, 300), &Interval{}, &Interval{Index: -3, FirstError: -1, Connections: -2, MaxLag: 1 << 62, Pods: 7}) {
		b := AppendInterval(dst, iv)
		if string(b[:4]) != "kept" {
			t.Fatal("AppendInterval did not append")
		}
		got, err := DecodeInterval(b[4:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := difference(*iv, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-sent +received)\n%s", diff)
		}
		for n := range len(b) - 4 {
			if _, err := DecodeInterval(b[4 : 4+n]); !errors.Is(err, codec.ErrCorrupt) {
				t.Fatalf("%d of %d bytes: error %v", n, len(b)-4, err)
			}
		}
		if _, err := DecodeInterval(append(b[4:], 0)); !errors.Is(err, codec.ErrCorrupt) {
			t.Fatalf("a byte too many: error %v", err)
		}
	}
}

func TestDecodeIntervalRefuses(t *testing.T) {
	one := func(change func(*Interval)) []byte {
		iv := newInterval(0, 1)
		change(&iv)
		return AppendInterval(nil, &iv)
	}
	for name, b := range map[string][]byte{
		"another version":      {1, 0, 0, 0},
		"too many shards":      one(func(iv *Interval) { iv.Shards = make([]ShardCounts, MaxShards+1) }),
		"a shard too far":      one(func(iv *Interval) { iv.ShardGaps = []ShardGap{{Shard: MaxShards}} }),
		"cell beyond the end":  one(func(iv *Interval) { iv.Ops[0].Latency = histogram.Buckets{{Index: histogram.Cells, Count: 1}} }),
		"empty cell":           one(func(iv *Interval) { iv.Ops[0].Latency = histogram.Buckets{{Index: 5}} }),
		"cells out of order":   one(func(iv *Interval) { iv.Ops[0].Latency = histogram.Buckets{{Index: 5, Count: 1}, {Index: 5, Count: 1}} }),
		"a billion operations": {intervalVersion, 0, 1, 0x80, 0x94, 0xeb, 0xdc, 3},
	} {
		if _, err := DecodeInterval(b); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzDecodeInterval checks that no input makes decoding panic or allocate out of proportion, and that what is accepted survives a round trip.
func FuzzDecodeInterval(f *testing.F) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, iv := range podIntervals(r, 5) {
		f.Add(AppendInterval(nil, iv))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		iv, err := DecodeInterval(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*len(b)+1<<16); got > limit {
			t.Fatalf("%d bytes made it allocate %d", len(b), got)
		}
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeInterval(AppendInterval(nil, &iv))
		if err != nil {
			t.Fatal(err)
		}
		if diff := difference(iv, again, cmpopts.EquateNaNs()); diff != "" {
			t.Fatal(diff)
		}
	})
}
