package record

// MovedBack returns the interval of a pod whose clock is ahead, in nanoseconds, with its instants
// on the clock of the run. It shares the rest with iv.
func (iv *Interval) MovedBack(ahead int64) *Interval {
	if ahead == 0 {
		return iv
	}
	c := *iv
	for _, at := range [...]*int64{&c.FirstError, &c.LastError, &c.FirstOK, &c.LastOK} {
		if *at >= 0 {
			*at = max(0, *at-ahead)
		}
	}
	c.Gaps, c.ProbeGaps, c.PartGaps, c.Stalls = nil, nil, nil, nil
	c.ShardGaps = shardsEarlier(iv.ShardGaps, ahead)
	c.ProbeShardGaps = shardsEarlier(iv.ProbeShardGaps, ahead)
	for _, g := range iv.Gaps {
		c.Gaps = append(c.Gaps, g.earlier(ahead))
	}
	for _, g := range iv.ProbeGaps {
		c.ProbeGaps = append(c.ProbeGaps, g.earlier(ahead))
	}
	for _, g := range iv.PartGaps {
		c.PartGaps = append(c.PartGaps, PartGap{Part: g.Part, Gap: g.Gap.earlier(ahead)})
	}
	for _, stall := range iv.Stalls {
		c.Stalls = append(c.Stalls, Stall{From: stall.From - ahead, To: stall.To - ahead})
	}
	return &c
}

// earlier returns the gap moved by a time; the start of the run stays the start.
func (g Gap) earlier(by int64) Gap {
	if g.From != 0 {
		g.From -= by
	}
	g.To -= by
	return g
}

func shardsEarlier(gaps []ShardGap, ahead int64) []ShardGap {
	var list []ShardGap
	for _, g := range gaps {
		list = append(list, ShardGap{Shard: g.Shard, Gap: g.Gap.earlier(ahead)})
	}
	return list
}
