package merged

import (
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
)

// addShards adds a pod's shard figures of the interval [begin, end).
func (p *podRecord) addShards(iv *record.Interval, begin, end int64) {
	n := len(iv.Shards)
	for i := range iv.ShardGaps {
		n = max(n, iv.ShardGaps[i].Shard+1)
	}
	for len(p.shards) < n {
		p.shards = append(p.shards, silence.NewPartStream())
	}
	for k := range iv.Shards {
		p.shards[k].Count(iv.Shards[k].OK, iv.Shards[k].Errors, begin, end)
	}
	for _, g := range iv.ShardGaps {
		t := &p.shards[g.Shard]
		t.Gaps = append(t.Gaps, g.Gap)
	}
}

func beyond(g record.ShardGap) bool {
	return g.Shard < 0 || g.Shard >= record.MaxShards
}

// addProbes adds what the probe of each of several shards did in the interval [begin, end).
func (p *podRecord) addProbes(iv *record.Interval, begin, end int64) {
	n := len(iv.ProbeShards)
	for i := range iv.ProbeShardGaps {
		n = max(n, iv.ProbeShardGaps[i].Shard+1)
	}
	for len(p.probes) < n {
		p.probes = append(p.probes, silence.NewStream())
	}
	for k, c := range iv.ProbeShards {
		if c.OK > 0 {
			p.probes[k].Add(nil, c.OK, begin, end)
		}
	}
	for _, g := range iv.ProbeShardGaps {
		t := &p.probes[g.Shard]
		t.Gaps = append(t.Gaps, g.Gap)
	}
}

// Shards is the number of shards that have received requests so far; 0 for a target with one shard.
func (s *Series) Shards() int {
	n := 0
	for i := range s.pods {
		n = max(n, len(s.pods[i].shards))
	}
	return n
}

// ShardGaps is like Gaps, for one shard, over the pods that sent requests to it. A shard has no gap
// before its first request, nor if its first success is in the same interval as that request. If
// the last success is not followed by another, the gap is assumed to begin at the end of its
// interval, and it counts only if a later interval has an error of that shard: otherwise no more
// requests were sent to it.
func (s *Series) ShardGaps(shard int) []record.Gap {
	return s.partial(s.common.shards, shard, func(p *podRecord) *silence.PartStream {
		return at(p.shards, shard)
	})
}
