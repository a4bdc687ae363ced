package engine

import (
	"github.com/redquake/redquake/internal/record"
)

// shardLog is what is kept of each shard where there are several: an aggregate hides a shard that is down. Its number may grow.
type shardLog struct {
	gaps [record.MaxShards]*gapLog // filled before the loops begin; nil beyond
}

// newShardLog makes room for all shards that may come: a gap log is small.
func newShardLog() *shardLog {
	s := &shardLog{}
	for i := range s.gaps {
		s.gaps[i] = newGapLog(2 * unknownPace)
	}
	return s
}

// take adds the shards' gaps that ended before until to the interval, and at the end those that are open.
func (s *shardLog) take(iv *record.Interval, until, end int64, last bool) {
	for shard := range iv.Shards {
		for _, g := range s.gaps[shard].take(until) {
			iv.ShardGaps = append(iv.ShardGaps, record.ShardGap{Shard: shard, Gap: g})
		}
		if last {
			if g, open := s.gaps[shard].open(end); open {
				iv.ShardGaps = append(iv.ShardGaps, record.ShardGap{Shard: shard, Gap: g})
			}
		}
	}
}

// setThresholds follows the run's mean time between successes, of which each shard has its part.
func (s *shardLog) setThresholds(shards int, pace int64) {
	for i := range shards {
		s.gaps[i].threshold.Store(max(2*pace*int64(shards), gapFloor))
	}
}
