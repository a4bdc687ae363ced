package merged

import (
	"math"
	"math/bits"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

func appendColumns(b []byte, s *Series) []byte {
	for k := range len(s.Ops) + 1 {
		for col := range (&record.Counts{}).Figures() {
			before := &record.Counts{}
			for i := range s.intervals {
				now := &s.intervals[i].Operation(k).Counts
				b = codec.AppendInt(b, int64(*now.Figures()[col]-predict(col, now, before)))
				before = now
			}
		}
		for i := range s.intervals {
			b = record.AppendClasses(b, &s.intervals[i].Operation(k).Errors)
		}
	}
	for col := range 4 {
		for i := range s.intervals {
			in := instants(&s.intervals[i], int64(s.Step))[col]
			if b = codec.AppendBool(b, *in.at != -1); *in.at != -1 {
				b = codec.AppendInt(b, *in.at-*in.near)
			}
		}
	}
	connections := 0
	for i := range s.intervals {
		b = codec.AppendUint(b, uint64(s.intervals[i].Pods))
		b = codec.AppendInt(b, s.intervals[i].MaxLag)
		b = codec.AppendInt(b, int64(s.intervals[i].Connections-connections))
		connections = s.intervals[i].Connections
	}
	for k := range s.Tallies {
		before := uint64(0)
		for i := range s.intervals {
			now := s.intervals[i].Tallies[k]
			b = codec.AppendInt(b, int64(now-before))
			before = now
		}
	}
	var before []record.ShardCounts
	for i := range s.intervals {
		b = record.AppendShards(b, s.intervals[i].Shards, before)
		before = s.intervals[i].Shards
	}
	for i := range s.intervals {
		b = record.AppendLost(b, s.intervals[i].Lost)
	}
	for i := range s.intervals {
		b = codec.AppendList(b, s.intervals[i].Stalled, func(b []byte, n *int64) []byte {
			return codec.AppendInt(b, *n)
		})
	}
	return b
}

func readColumns(r *codec.Reader, s *Series) {
	for k := range len(s.Ops) + 1 {
		for col := range (&record.Counts{}).Figures() {
			before := &record.Counts{}
			for i := range s.intervals {
				now := &s.intervals[i].Operation(k).Counts
				*now.Figures()[col] = predict(col, now, before) + uint64(r.Int())
				before = now
			}
		}
		for i := range s.intervals {
			record.ReadClasses(r, &s.intervals[i].Operation(k).Errors)
		}
	}
	for col := range 4 {
		for i := range s.intervals {
			in := instants(&s.intervals[i], int64(s.Step))[col]
			if r.Bool() {
				*in.at = *in.near + r.Int()
			}
		}
	}
	connections := 0
	for i := range s.intervals {
		s.intervals[i].Pods = int(r.Uint())
		s.intervals[i].MaxLag = r.Int()
		connections += int(r.Int())
		s.intervals[i].Connections = connections
	}
	for k := range s.Tallies {
		before := uint64(0)
		for i := range s.intervals {
			before += uint64(r.Int())
			s.intervals[i].Tallies[k] = before
		}
	}
	var before []record.ShardCounts
	for i := range s.intervals {
		s.intervals[i].Shards = record.ReadShards(r, before)
		before = s.intervals[i].Shards
	}
	for i := range s.intervals {
		s.intervals[i].Lost = record.ReadLost(r)
	}
	for i := range s.intervals {
		s.intervals[i].Stalled = codec.ReadList(r, 1, func(n *int64) { *n = r.Int() })
	}
}

// predict estimates a figure from the preceding figures of the interval and from the previous
// interval: only the difference is encoded. col is an index into Counts.figures.
func predict(col int, now, before *record.Counts) uint64 {
	switch col {
	case 1:
		return now.OK // sent
	case 2:
		return now.Sent // due
	case 3:
		return scaled(before.BytesOut, now.Sent, before.Sent)
	case 4:
		return scaled(before.BytesIn, now.OK, before.OK)
	}
	return *before.Figures()[col]
}

// scaled is v*by/of, or v if that is not defined.
func scaled(v, by, of uint64) uint64 {
	high, low := bits.Mul64(v, by)
	if of == 0 || high >= of {
		return v
	}
	q, _ := bits.Div64(high, low, of)
	return q
}

// instants returns an interval's instants, each with the boundary of the interval that is usually
// closest.
func instants(iv *record.Interval, step int64) [4]struct{ at, near *int64 } {
	begin := iv.Index * step
	end := begin + step
	return [...]struct{ at, near *int64 }{
		{&iv.FirstError, &begin}, {&iv.LastError, &end}, {&iv.FirstOK, &begin}, {&iv.LastOK, &end},
	}
}

// appendHistograms writes first the used cells of all histograms, then their counts: similar values
// next to each other compress better.
func appendHistograms(b []byte, s *Series) []byte {
	every := int(s.LatencyStep / s.Step)
	for i := 0; i < len(s.intervals); i += every {
		for _, h := range s.intervals[i].Histograms() {
			b = codec.AppendUint(b, uint64(len(*h)))
			next := 0
			for _, c := range *h {
				b = codec.AppendUint(b, uint64(int(c.Index)-next))
				next = int(c.Index) + 1
			}
		}
	}
	for i := 0; i < len(s.intervals); i += every {
		for _, h := range s.intervals[i].Histograms() {
			for _, c := range *h {
				b = codec.AppendUint(b, uint64(c.Count))
			}
		}
	}
	return b
}

func readHistograms(r *codec.Reader, s *Series) {
	every := int(s.LatencyStep / s.Step)
	for i := 0; i < len(s.intervals); i += every {
		for _, h := range s.intervals[i].Histograms() {
			n := r.Count(2) // the index here, the count below
			if n == 0 {
				continue
			}
			*h = make(histogram.Buckets, n)
			next := uint64(0)
			for c := range *h {
				step := r.Uint()
				if step >= histogram.Cells || next+step >= histogram.Cells {
					r.Fail("cell outside the layout")
					return
				}
				(*h)[c].Index = uint16(next + step)
				next += step + 1
			}
		}
	}
	for i := 0; i < len(s.intervals); i += every {
		for _, h := range s.intervals[i].Histograms() {
			for c := range *h {
				n := r.Uint()
				if n == 0 || n > math.MaxUint32 {
					r.Fail("cell with count %d", n)
					return
				}
				(*h)[c].Count = uint32(n)
			}
		}
	}
}
