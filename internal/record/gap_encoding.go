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
	k := 0
	shards := readList(r, 2, func(c *ShardCounts) {
		b := shardAt(before, k)
		c.OK, c.Errors = b.OK+uint64(r.int()), b.Errors+uint64(r.int())
		k++
	})
	if len(shards) > MaxShards {
		r.fail("%d shards", len(shards))
		return nil
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
	return appendList(dst, gaps, func(dst []byte, g *ShardGap) []byte { return appendNumberedGap(dst, g.Shard, g.Gap) })
}

func (r *reader) shardGaps() []ShardGap {
	return readList(r, 1+minGapSize, func(g *ShardGap) { g.Shard, g.Gap = r.numberedGap(MaxShards) })
}

func appendPartGaps(dst []byte, gaps []PartGap) []byte {
	return appendList(dst, gaps, func(dst []byte, g *PartGap) []byte { return appendNumberedGap(dst, int(g.Part), g.Gap) })
}

func (r *reader) partGaps() []PartGap {
	return readList(r, 1+minGapSize, func(g *PartGap) {
		part, gap := r.numberedGap(maxParts)
		g.Part, g.Gap = Part(part), gap
	})
}

// appendNumberedGap writes a gap of the shard, or the part, with a number.
func appendNumberedGap(dst []byte, number int, g Gap) []byte {
	return appendGap(appendUint(dst, uint64(number)), g, 0)
}

func (r *reader) numberedGap(limit int) (int, Gap) { return r.below(limit), r.gap(0) }

// below reads a number in [0, limit).
func (r *reader) below(limit int) int {
	v := r.uint()
	if v >= uint64(limit) {
		r.fail("number %d, the limit is %d", v, limit)
		return 0
	}
	return int(v)
}

func appendGaps(dst []byte, gaps []Gap) []byte {
	var last int64
	return appendList(dst, gaps, func(dst []byte, g *Gap) []byte {
		dst = appendGap(dst, *g, last)
		last = g.To
		return dst
	})
}

func (r *reader) gaps() []Gap {
	var last int64
	return readList(r, minGapSize, func(g *Gap) {
		*g = r.gap(last)
		last = g.To
	})
}

// Bits of the number that precedes a gap's bounds.
const (
	gapOpen    = 1 << iota
	gapBounded // bounds follow
)

// minGapSize is the length of a gap without bounds.
const minGapSize = 3

// appendGap writes a gap; last is the end of the one before it.
func appendGap(dst []byte, g Gap, last int64) []byte {
	var flags uint64
	if g.Open {
		flags = gapOpen
	}
	bounds := g.bounds()
	for _, b := range bounds {
		if *b != 0 {
			flags |= gapBounded
		}
	}
	dst = appendInt(dst, g.From-last)
	dst = appendInt(dst, g.To-g.From)
	dst = appendUint(dst, flags)
	if flags&gapBounded != 0 {
		for _, b := range bounds {
			dst = appendInt(dst, *b)
		}
	}
	return dst
}

func (r *reader) gap(last int64) Gap {
	var g Gap
	g.From = last + r.int()
	g.To = g.From + r.int()
	flags := r.below(2 * gapBounded)
	g.Open = flags&gapOpen != 0
	if flags&gapBounded != 0 {
		for _, b := range g.bounds() {
			*b = r.int()
		}
	}
	return g
}

// bounds lists the fields that tell what is not known about a gap, in the order of the encoding.
func (g *Gap) bounds() [4]*int64 {
	return [...]*int64{&g.MaybeBefore, &g.MaybeSooner, &g.UnprovenHead, &g.UnprovenTail}
}

func appendStalls(dst []byte, stalls []Stall) []byte {
	var last int64
	return appendList(dst, stalls, func(dst []byte, s *Stall) []byte {
		dst = appendInt(dst, s.From-last)
		dst = appendInt(dst, s.To-s.From)
		last = s.To
		return dst
	})
}

func (r *reader) stalls() []Stall {
	var last int64
	return readList(r, 2, func(s *Stall) {
		s.From = last + r.int()
		s.To = s.From + r.int()
		last = s.To
	})
}
