package record

func appendShards(dst []byte, shards, before []ShardCounts) []byte {
	dst = appendUint(dst, uint64(len(shards)))
	for k, c := range shards {
		b := shardAt(before, k)
		dst = appendInt(dst, int64(c.OK-b.OK))
		dst = appendInt(dst, int64(c.Errors-b.Errors))
	}
	return dst
}

// shards reads the output of appendShards: differences from before.
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

func appendGaps(dst []byte, gaps []Gap) []byte {
	dst = appendUint(dst, uint64(len(gaps)))
	var last int64
	for _, g := range gaps {
		dst = appendInt(dst, g.From-last)
		dst = appendInt(dst, g.To-g.From)
		dst = appendBool(dst, g.Open)
		last = g.To
	}
	return dst
}

func (r *reader) gaps() []Gap {
	n := r.count(3)
	if n == 0 {
		return nil
	}
	gaps := make([]Gap, n)
	var last int64
	for i := range gaps {
		from := last + r.int()
		last = from + r.int()
		gaps[i] = Gap{From: from, To: last, Open: r.bool()}
	}
	return gaps
}
