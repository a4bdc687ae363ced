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
		dst = appendGap(dst, g.Gap, 0)
	}
	return dst
}

func (r *reader) shardGaps() []ShardGap {
	n := r.count(1 + minGapSize)
	if n == 0 {
		return nil
	}
	gaps := make([]ShardGap, n)
	for i := range gaps {
		gaps[i].Shard = r.below(MaxShards)
		gaps[i].Gap = r.gap(0)
	}
	return gaps
}

func appendPartGaps(dst []byte, gaps []PartGap) []byte {
	dst = appendUint(dst, uint64(len(gaps)))
	for _, g := range gaps {
		dst = appendUint(dst, uint64(g.Part))
		dst = appendGap(dst, g.Gap, 0)
	}
	return dst
}

func (r *reader) partGaps() []PartGap {
	n := r.count(1 + minGapSize)
	if n == 0 {
		return nil
	}
	gaps := make([]PartGap, n)
	for i := range gaps {
		gaps[i].Part = Part(r.below(maxParts))
		gaps[i].Gap = r.gap(0)
	}
	return gaps
}

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
	dst = appendUint(dst, uint64(len(gaps)))
	var last int64
	for _, g := range gaps {
		dst = appendGap(dst, g, last)
		last = g.To
	}
	return dst
}

func (r *reader) gaps() []Gap {
	n := r.count(minGapSize)
	if n == 0 {
		return nil
	}
	gaps := make([]Gap, n)
	var last int64
	for i := range gaps {
		gaps[i] = r.gap(last)
		last = gaps[i].To
	}
	return gaps
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
	dst = appendUint(dst, uint64(len(stalls)))
	var last int64
	for _, s := range stalls {
		dst = appendInt(dst, s.From-last)
		dst = appendInt(dst, s.To-s.From)
		last = s.To
	}
	return dst
}

func (r *reader) stalls() []Stall {
	n := r.count(2)
	if n == 0 {
		return nil
	}
	stalls := make([]Stall, n)
	var last int64
	for i := range stalls {
		stalls[i].From = last + r.int()
		stalls[i].To = stalls[i].From + r.int()
		last = stalls[i].To
	}
	return stalls
}
