package record

import "github.com/redquake/redquake/internal/record/codec"

// AppendShards writes the requests of shards as differences from before.
func AppendShards(dst []byte, shards, before []ShardCounts) []byte {
	dst = codec.AppendUint(dst, uint64(len(shards)))
	for k, c := range shards {
		b := shardAt(before, k)
		dst = codec.AppendInt(dst, int64(c.OK-b.OK))
		dst = codec.AppendInt(dst, int64(c.Errors-b.Errors))
	}
	return dst
}

// ReadShards reads the output of AppendShards: differences from before.
func ReadShards(r *codec.Reader, before []ShardCounts) []ShardCounts {
	k := 0
	shards := codec.ReadList(r, 2, func(c *ShardCounts) {
		b := shardAt(before, k)
		c.OK, c.Errors = b.OK+uint64(r.Int()), b.Errors+uint64(r.Int())
		k++
	})
	if len(shards) > MaxShards {
		r.Fail("%d shards", len(shards))
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
	return codec.AppendList(dst, gaps, func(dst []byte, g *ShardGap) []byte {
		return appendNumberedGap(dst, g.Shard, g.Gap)
	})
}

func readShardGaps(r *codec.Reader) []ShardGap {
	return codec.ReadList(r, 1+minGapSize, func(g *ShardGap) {
		g.Shard, g.Gap = readNumberedGap(r,
			MaxShards)
	})
}

func appendPartGaps(dst []byte, gaps []PartGap) []byte {
	return codec.AppendList(dst, gaps, func(dst []byte, g *PartGap) []byte {
		return appendNumberedGap(dst, int(g.Part), g.Gap)
	})
}

func readPartGaps(r *codec.Reader) []PartGap {
	return codec.ReadList(r, 1+minGapSize, func(g *PartGap) {
		part, gap := readNumberedGap(r, MaxParts)
		g.Part, g.Gap = Part(part), gap
	})
}

// appendNumberedGap writes a gap of the shard, or the part, with a number.
func appendNumberedGap(dst []byte, number int, g Gap) []byte {
	return appendGap(codec.AppendUint(dst, uint64(number)), g, 0)
}

func readNumberedGap(r *codec.Reader, limit int) (int, Gap) {
	return r.Below(limit), readGap(r, 0)
}

// AppendGaps writes gaps, each relative to the one before it.
func AppendGaps(dst []byte, gaps []Gap) []byte {
	var last int64
	return codec.AppendList(dst, gaps, func(dst []byte, g *Gap) []byte {
		dst = appendGap(dst, *g, last)
		last = g.To
		return dst
	})
}

// ReadGaps reads the output of AppendGaps.
func ReadGaps(r *codec.Reader) []Gap {
	var last int64
	return codec.ReadList(r, minGapSize, func(g *Gap) {
		*g = readGap(r, last)
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
	dst = codec.AppendInt(dst, g.From-last)
	dst = codec.AppendInt(dst, g.To-g.From)
	dst = codec.AppendUint(dst, flags)
	if flags&gapBounded != 0 {
		for _, b := range bounds {
			dst = codec.AppendInt(dst, *b)
		}
	}
	return dst
}

func readGap(r *codec.Reader, last int64) Gap {
	var g Gap
	g.From = last + r.Int()
	g.To = g.From + r.Int()
	flags := r.Below(2 * gapBounded)
	g.Open = flags&gapOpen != 0
	if flags&gapBounded != 0 {
		for _, b := range g.bounds() {
			*b = r.Int()
		}
	}
	return g
}

// bounds lists the fields that tell what is not known about a gap, in the order of the encoding.
func (g *Gap) bounds() [4]*int64 {
	return [...]*int64{&g.MaybeBefore, &g.MaybeSooner, &g.UnprovenHead, &g.UnprovenTail}
}

// AppendStalls writes stalls, each relative to the one before it.
func AppendStalls(dst []byte, stalls []Stall) []byte {
	var last int64
	return codec.AppendList(dst, stalls, func(dst []byte, s *Stall) []byte {
		dst = codec.AppendInt(dst, s.From-last)
		dst = codec.AppendInt(dst, s.To-s.From)
		last = s.To
		return dst
	})
}

// ReadStalls reads the output of AppendStalls.
func ReadStalls(r *codec.Reader) []Stall {
	var last int64
	return codec.ReadList(r, 2, func(s *Stall) {
		s.From = last + r.Int()
		s.To = s.From + r.Int()
		last = s.To
	})
}
