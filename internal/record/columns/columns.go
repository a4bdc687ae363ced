// Package columns encodes the intervals of a record as columns of differences: the values of one
// figure in all intervals are next to each other, so that they compress well.
package columns

import (
	"math"
	"math/bits"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

// Table is consecutive intervals with the same operations and tallies. Those that are read into are
// empty ones.
type Table struct {
	Intervals []record.Interval
	Step      time.Duration // from each interval to the next
	Every     int           // how many share their histograms, which are in the first of them
}

// operations is the number of operations, with the probe.
func (t Table) operations() int {
	if len(t.Intervals) == 0 {
		return 0
	}
	return len(t.Intervals[0].Ops) + 1
}

func (t Table) tallies() int {
	if len(t.Intervals) == 0 {
		return 0
	}
	return len(t.Intervals[0].Tallies)
}

// AppendFigures writes all figures but the histograms.
func (t Table) AppendFigures(b []byte) []byte {
	for k := range t.operations() {
		for col := range (&record.Counts{}).Figures() {
			before := &record.Counts{}
			for i := range t.Intervals {
				now := &t.Intervals[i].Operation(k).Counts
				b = codec.AppendInt(b, int64(*now.Figures()[col]-predict(col, now, before)))
				before = now
			}
		}
		for i := range t.Intervals {
			b = record.AppendClasses(b, &t.Intervals[i].Operation(k).Errors)
		}
	}
	for col := range 4 {
		for i := range t.Intervals {
			in := instants(&t.Intervals[i], int64(t.Step))[col]
			if b = codec.AppendBool(b, *in.at != -1); *in.at != -1 {
				b = codec.AppendInt(b, *in.at-*in.near)
			}
		}
	}
	connections := 0
	for i := range t.Intervals {
		b = codec.AppendUint(b, uint64(t.Intervals[i].Pods))
		b = codec.AppendInt(b, t.Intervals[i].MaxLag)
		b = codec.AppendInt(b, int64(t.Intervals[i].Connections-connections))
		connections = t.Intervals[i].Connections
	}
	for k := range t.tallies() {
		before := uint64(0)
		for i := range t.Intervals {
			now := t.Intervals[i].Tallies[k]
			b = codec.AppendInt(b, int64(now-before))
			before = now
		}
	}
	var before []record.ShardCounts
	for i := range t.Intervals {
		b = record.AppendShards(b, t.Intervals[i].Shards, before)
		before = t.Intervals[i].Shards
	}
	for i := range t.Intervals {
		b = record.AppendLost(b, t.Intervals[i].Lost)
	}
	for i := range t.Intervals {
		b = codec.AppendList(b, t.Intervals[i].Stalled, func(b []byte, n *int64) []byte {
			return codec.AppendInt(b, *n)
		})
	}
	return b
}

// ReadFigures reads what AppendFigures wrote.
func (t Table) ReadFigures(r *codec.Reader) {
	for k := range t.operations() {
		for col := range (&record.Counts{}).Figures() {
			before := &record.Counts{}
			for i := range t.Intervals {
				now := &t.Intervals[i].Operation(k).Counts
				*now.Figures()[col] = predict(col, now, before) + uint64(r.Int())
				before = now
			}
		}
		for i := range t.Intervals {
			record.ReadClasses(r, &t.Intervals[i].Operation(k).Errors)
		}
	}
	for col := range 4 {
		for i := range t.Intervals {
			in := instants(&t.Intervals[i], int64(t.Step))[col]
			if r.Bool() {
				*in.at = *in.near + r.Int()
			}
		}
	}
	connections := 0
	for i := range t.Intervals {
		t.Intervals[i].Pods = int(r.Uint())
		t.Intervals[i].MaxLag = r.Int()
		connections += int(r.Int())
		t.Intervals[i].Connections = connections
	}
	for k := range t.tallies() {
		before := uint64(0)
		for i := range t.Intervals {
			before += uint64(r.Int())
			t.Intervals[i].Tallies[k] = before
		}
	}
	var before []record.ShardCounts
	for i := range t.Intervals {
		t.Intervals[i].Shards = record.ReadShards(r, before)
		before = t.Intervals[i].Shards
	}
	for i := range t.Intervals {
		t.Intervals[i].Lost = record.ReadLost(r)
	}
	for i := range t.Intervals {
		t.Intervals[i].Stalled = codec.ReadList(r, 1, func(n *int64) { *n = r.Int() })
	}
}

// predict estimates a figure from the preceding figures of the interval and from the previous
// interval: only the difference is encoded. col is an index into Counts.Figures.
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

// AppendHistograms writes first the used cells of all histograms, then their counts: similar values
// next to each other compress better.
func (t Table) AppendHistograms(b []byte) []byte {
	for i := 0; i < len(t.Intervals); i += t.Every {
		for _, h := range t.Intervals[i].Histograms() {
			b = codec.AppendUint(b, uint64(len(*h)))
			next := 0
			for _, c := range *h {
				b = codec.AppendUint(b, uint64(int(c.Index)-next))
				next = int(c.Index) + 1
			}
		}
	}
	for i := 0; i < len(t.Intervals); i += t.Every {
		for _, h := range t.Intervals[i].Histograms() {
			for _, c := range *h {
				b = codec.AppendUint(b, uint64(c.Count))
			}
		}
	}
	return b
}

// ReadHistograms reads what AppendHistograms wrote.
func (t Table) ReadHistograms(r *codec.Reader) {
	for i := 0; i < len(t.Intervals); i += t.Every {
		for _, h := range t.Intervals[i].Histograms() {
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
	for i := 0; i < len(t.Intervals); i += t.Every {
		for _, h := range t.Intervals[i].Histograms() {
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
