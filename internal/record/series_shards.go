package record

import "slices"

// shardStream is what one pod's load had at one shard.
type shardStream struct {
	stream
	tried  int64 // begin of the first interval with a request; -1 = none yet
	failed int64 // end of the last interval with an error; -1 = none yet
}

// addShards takes a pod's figures of the interval [begin, end).
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
		if c.OK+c.Errors > 0 {
			t.tried = earlier(t.tried, begin)
		}
		if c.Errors > 0 {
			t.failed = end
		}
		if c.OK > 0 {
			t.add(nil, c.OK, begin, end) // intervals do not carry the shards' instants
		}
	}
	for _, g := range iv.ShardGaps {
		t := &p.shards[g.Shard]
		t.gaps = append(t.gaps, g.Gap)
	}
}

// Shards is how many shards the run has reached so far; 0 for a target with one shard.
func (s *Series) Shards() int {
	n := 0
	for i := range s.pods {
		n = max(n, len(s.pods[i].shards))
	}
	return n
}

// ShardGaps is as Gaps, for one shard, over the pods that sent requests to it. A shard has no gap before its first request, nor when its first success
// follows within the interval of that request. Where the last success is followed by none, the gap is taken to begin at the end of its interval, and it is one only if
// a later interval has an error of that shard: else no more requests go there.
func (s *Series) ShardGaps(shard int) []Gap {
	end := int64(s.End())
	born, failed := int64(-1), int64(-1)
	var lists [][]Gap
	for i := range s.pods {
		p := &s.pods[i]
		if shard < 0 || shard >= len(p.shards) || p.shards[shard].tried < 0 {
			continue
		}
		t := p.shards[shard]
		born, failed = earlier(born, t.tried), max(failed, t.failed)
		if t.tried > 0 { // until then this pod says nothing about the others' gaps
			t.gaps = append(slices.Clone(t.gaps), Gap{To: t.tried})
		}
		lists = append(lists, t.silence(p.next*int64(s.PodStep), end))
	}
	if lists == nil {
		return nil
	}
	common := lists[0]
	for _, list := range lists[1:] {
		common = overlap(common, list)
	}
	var gaps []Gap
	for _, g := range cut(common, end) {
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

func addShardCounts(to, from []ShardCounts) []ShardCounts {
	for len(to) < len(from) {
		to = append(to, ShardCounts{})
	}
	for k := range from {
		to[k].OK += from[k].OK
		to[k].Errors += from[k].Errors
	}
	return to
}

func appendShards(dst []byte, shards, before []ShardCounts) []byte {
	dst = appendUint(dst, uint64(len(shards)))
	for k, c := range shards {
		b := shardAt(before, k)
		dst = appendInt(dst, int64(c.OK-b.OK))
		dst = appendInt(dst, int64(c.Errors-b.Errors))
	}
	return dst
}

// shards reads what appendShards wrote as differences from before.
func (r *reader) shards(before []ShardCounts) []ShardCounts {
	n := r.count(2)
	if n > MaxShards {
		r.fail("%d shards", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	shards := make([]ShardCounts, n)
	for k := range shards {
		b := shardAt(before, k)
		shards[k] = ShardCounts{OK: b.OK + uint64(r.int()), Errors: b.Errors + uint64(r.int())}
	}
	return shards
}

func shardAt(shards []ShardCounts, k int) ShardCounts {
	if k < len(shards) {
		return shards[k]
	}
	return ShardCounts{}
}

func appendShardGaps(dst []byte, gaps []ShardGap) []byte {
	dst = appendUint(dst, uint64(len(gaps)))
	for _, g := range gaps {
		dst = appendUint(dst, uint64(g.Shard))
		dst = appendInt(dst, g.From)
		dst = appendInt(dst, g.To-g.From)
		dst = appendBool(dst, g.Open)
	}
	return dst
}

func (r *reader) shardGaps() []ShardGap {
	n := r.count(4)
	if n == 0 {
		return nil
	}
	gaps := make([]ShardGap, n)
	for i := range gaps {
		shard := r.uint()
		if shard >= MaxShards {
			r.fail("shard %d", shard)
			return nil
		}
		from := r.int()
		gaps[i] = ShardGap{Shard: int(shard), Gap: Gap{From: from, To: from + r.int(), Open: r.bool()}}
	}
	return gaps
}

func appendShardStreams(dst []byte, shards []shardStream) []byte {
	dst = appendUint(dst, uint64(len(shards)))
	for i := range shards {
		dst = appendStream(dst, &shards[i].stream)
		dst = appendInt(dst, shards[i].tried)
		dst = appendInt(dst, shards[i].failed)
	}
	return dst
}

func (r *reader) shardStreams() []shardStream {
	n := r.count(6)
	if n > MaxShards {
		r.fail("%d shards", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	shards := make([]shardStream, n)
	for i := range shards {
		r.stream(&shards[i].stream)
		shards[i].tried, shards[i].failed = r.int(), r.int()
	}
	return shards
}
