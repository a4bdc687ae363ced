package engine

import (
	"github.com/redquake/redquake/internal/record"
)

// shardLog keeps a gap log per shard if there are several: aggregated figures hide a shard that is down. The number of shards may grow.
type shardLog struct {
	gaps [record.MaxShards]*gapLog // created before the loops start
}

// newShardLog creates gap logs for the maximum number of shards: a gap log is small.
func newShardLog() *shardLog {
	s := &shardLog{}
	for i := range s.gaps {
		s.gaps[i] = newGapLog(2 * unknownPace)
	}
	return s
}

// take adds the shards' gaps that ended before until to the interval, and with last also the open ones.
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

// setThresholds sets the thresholds of the gap logs from the run's mean time between successes, which are spread over the shards.
func (s *shardLog) setThresholds(shards int, pace int64) {
	for i := range shards {
		s.gaps[i].threshold.Store(max(2*pace*int64(shards), gapFloor))
	}
}
