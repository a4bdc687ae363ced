package engine

import (
	"github.com/redquake/redquake/internal/record"
)

// shardLog is what is kept of each shard where there are several: an aggregate hides a shard that is down. Its number may grow.
type shardLog struct {
	gaps [record.MaxShards]*gapLog // filled before the loops begin; nil beyond
}

// shardSuccess notes successes of one wake-up, for the gap logs.
type shardSuccess struct {
	first, last int64 // first -1 = none
}

// succeeded notes n successes at a shard.
func (l *loop) succeeded(shard int, at int64, n uint32) {
	if l.firstOK < 0 {
		l.firstOK = at
	}
	l.lastOK = at
	if l.run.shards == nil || shard >= record.MaxShards {
		return
	}
	l.slot.shard(shard).OK += uint64(n)
	for len(l.shardOK) <= shard {
		l.shardOK = append(l.shardOK, shardSuccess{first: -1})
	}
	s := &l.shardOK[shard]
	if s.first < 0 {
		s.first = at
	}
	s.last = at
}

// failed notes an outcome that is no success at the shard.
func (l *loop) failed(s *slot, shard int) {
	if l.run.shards != nil && shard < record.MaxShards {
		s.shard(shard).Errors++
	}
}

// tellShards hands the wake-up's successes to the gap logs.
func (l *loop) tellShards() {
	for i := range l.shardOK {
		if s := &l.shardOK[i]; s.first >= 0 {
			log := l.run.shards.gaps[i]
			log.success(s.first)
			log.success(s.last)
			s.first = -1
		}
	}
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
