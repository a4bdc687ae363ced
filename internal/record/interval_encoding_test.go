package record_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/testing/intervals"
)

func TestIntervalRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	dst := []byte("kept")
	for _, iv := range append(intervals.OfPod(r,
		300), &record.Interval{}, &record.Interval{Index: -3, FirstError: -1, Connections: -2, MaxLag: 1 << 62, Pods: 7}) {
		b := record.AppendInterval(dst, iv)
		if string(b[:4]) != "kept" {
			t.Fatal("AppendInterval did not append")
		}
		got, err := record.DecodeInterval(b[4:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*iv, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-sent +received)\n%s", diff)
		}
		for n := range len(b) - 4 {
			if _, err := record.DecodeInterval(b[4 : 4+n]); !errors.Is(err, codec.ErrCorrupt) {
				t.Fatalf("%d of %d bytes: error %v", n, len(b)-4, err)
			}
		}
		if _, err := record.DecodeInterval(append(b[4:], 0)); !errors.Is(err, codec.ErrCorrupt) {
			t.Fatalf("a byte too many: error %v", err)
		}
	}
}

// FuzzDecodeInterval checks that no input makes decoding panic or allocate out of proportion, and that what is accepted
// survives a round trip.
func FuzzDecodeInterval(f *testing.F) {
	r := rand.New(rand.NewPCG(33, 34))
	for _, iv := range intervals.OfPod(r, 5) {
		f.Add(record.AppendInterval(nil, iv))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		iv, err := record.DecodeInterval(b)
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
		again, err := record.DecodeInterval(record.AppendInterval(nil, &iv))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(iv, again, cmpopts.EquateNaNs()); diff != "" {
			t.Fatal(diff)
		}
	})
}
