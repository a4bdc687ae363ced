package record

// addShards adds a pod's shard figures of the interval [begin, end).
func (p *podRecord) addShards(iv *Interval, begin, end int64) {
	n := len(iv.Shards)
	for i := range iv.ShardGaps {
		n = max(n, iv.ShardGaps[i].Shard+1)
	}
	for len(p.shards) < n {
		p.shards = append(p.shards, shardStream{stream: newStream(), tried: -1, failed: -1})
	}
	for k := range iv.Shards {
		c, t := &iv.Shards[k], &p.shards[k]
		if c.OK+c.Errors > 0 && t.tried < 0 {
			if t.tried = begin; begin > 0 { // until then this pod does not affect the gaps of the others
				t.gaps = append(t.gaps, Gap{To: begin})
			}
		}
		if c.Errors > 0 {
			t.failed = end
		}
		if c.OK > 0 {
			t.add(nil, c.OK, begin, end) // intervals do not contain the shards' instants
		}
	}
	for _, g := range iv.ShardGaps {
		t := &p.shards[g.Shard]
		t.gaps = append(t.gaps, g.Gap)
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

// ShardGaps is like Gaps, for one shard, over the pods that sent requests to it. A shard has no gap before its first request, nor if its first success
// is in the same interval as that request. If the last success is not followed by another, the gap is assumed to begin at the end of its interval,
// and it counts only if a later interval has an error of that shard: otherwise no more requests were sent to it.
func (s *Series) ShardGaps(shard int) []Gap {
	end := int64(s.End())
	born, failed := int64(-1), int64(-1)
	var lists [][]Gap
	for i := range s.pods {
		p := &s.pods[i]
		if shard < 0 || shard >= len(p.shards) || p.shards[shard].tried < 0 {
			continue
		}
		t := &p.shards[shard]
		born, failed = earlier(born, t.tried), max(failed, t.failed)
		lists = append(lists, t.silence(p.delivered(s.PodStep), end))
	}
	if lists == nil {
		return nil
	}
	var merged merging
	if shard < len(s.shardGaps) {
		merged = s.shardGaps[shard]
	}
	var gaps []Gap
	for _, g := range cut(merged.common(lists), end) {
		if g.From <= born {
			if g.From = born; g.To <= born+int64(s.PodStep) {
				continue
			}
		}
		if g.Open && failed <= g.From {
			continue
		}
		gaps = append(gaps, g)
	}
	return gaps
}
