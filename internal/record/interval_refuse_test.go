package record

import (
	"errors"
	"testing"

	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

func TestDecodeIntervalRefuses(t *testing.T) {
	one := func(change func(*Interval)) []byte {
		iv := NewInterval(0, 1)
		change(&iv)
		return AppendInterval(nil, &iv)
	}
	for name, b := range map[string][]byte{
		"another version": {1, 0, 0, 0},
		"too many shards": one(func(iv *Interval) { iv.Shards = make([]ShardCounts, MaxShards+1) }),
		"a shard too far": one(func(iv *Interval) { iv.ShardGaps = []ShardGap{{Shard: MaxShards}} }),
		"cell beyond the end": one(func(iv *Interval) {
			iv.Ops[0].Latency = histogram.Buckets{
				{Index: histogram.Cells, Count: 1},
			}
		}),
		"empty cell": one(func(iv *Interval) { iv.Ops[0].Latency = histogram.Buckets{{Index: 5}} }),
		"cells out of order": one(func(iv *Interval) {
			iv.Ops[0].Latency = histogram.Buckets{
				{Index: 5, Count: 1},
				{Index: 5, Count: 1},
			}
		}),
		"a billion operations": {intervalVersion, 0, 1, 0x80, 0x94, 0xeb, 0xdc, 3},
	} {
		if _, err := DecodeInterval(b); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
