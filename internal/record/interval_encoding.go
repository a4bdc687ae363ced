package record

import (
	"math"
	"slices"

	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

// intervalVersion is the first byte of an encoded interval.
const intervalVersion = 9

// AppendInterval appends an interval in the form that pods send: a version byte, then numbers as
// varints and bucket indices as differences.
// It has no terminator: the transport frames it.
func AppendInterval(dst []byte, iv *Interval) []byte {
	dst = append(dst, intervalVersion)
	dst = codec.AppendInt(dst, iv.Index)
	dst = codec.AppendUint(dst, uint64(iv.Pods))
	dst = codec.AppendUint(dst, uint64(len(iv.Ops)))
	for i := range iv.Ops {
		dst = appendOp(dst, &iv.Ops[i])
	}
	dst = appendOp(dst, &iv.Probe)
	for _, at := range [...]int64{
		iv.FirstError, iv.LastError, iv.FirstOK, iv.LastOK, iv.MaxLag,
		int64(iv.Connections),
	} {
		dst = codec.AppendInt(dst, at)
	}
	dst = AppendGaps(dst, iv.Gaps)
	dst = AppendGaps(dst, iv.ProbeGaps)
	dst = appendPartGaps(dst, iv.PartGaps)
	dst = AppendStalls(dst, iv.Stalls)
	dst = codec.AppendBool(dst, iv.Unsettled)
	dst = codec.AppendList(dst, iv.Tallies, func(dst []byte, n *uint64) []byte {
		return codec.AppendUint(dst, *n)
	})
	dst = AppendShards(dst, iv.Shards, nil)
	dst = appendShardGaps(dst, iv.ShardGaps)
	dst = AppendShards(dst, iv.ProbeShards, nil)
	dst = appendShardGaps(dst, iv.ProbeShardGaps)
	dst = AppendLost(dst, iv.Lost)
	dst = codec.AppendList(dst, iv.LedgerChecks, AppendCheck)
	dst = appendServers(dst, iv.Servers)
	dst = AppendUnobserved(dst, iv.Unobserved)
	return appendAgents(dst, iv.Agents)
}

// DecodeInterval reads what AppendInterval wrote. Any other input gives an error that wraps
// codec.ErrCorrupt. Allocations are proportional to the input's length. Empty lists are decoded as
// nil.
func DecodeInterval(b []byte) (Interval, error) {
	var iv Interval
	if err := iv.Decode(b); err != nil {
		return Interval{}, err
	}
	return iv, nil
}

// Decode is DecodeInterval into an existing interval. It reuses the memory of its operations and
// histograms, so that decoding many intervals allocates almost nothing. After an error the contents
// are undefined, but the interval can be reused.
func (iv *Interval) Decode(b []byte) error {
	if len(b) == 0 || b[0] != intervalVersion {
		return codec.Corrupt("not an interval of version %d", intervalVersion)
	}
	r := codec.NewReader(b[1:])
	iv.Index = r.Int()
	iv.Pods = r.Small()
	n := r.Count(minOpSize)
	if n > cap(iv.Ops) {
		iv.Ops = append(iv.Ops[:cap(iv.Ops)], make([]Op, n-cap(iv.Ops))...)
	}
	iv.Ops = iv.Ops[:n]
	for i := range iv.Ops {
		readOp(r, &iv.Ops[i])
	}
	readOp(r, &iv.Probe)
	iv.FirstError = r.Int()
	iv.LastError = r.Int()
	iv.FirstOK = r.Int()
	iv.LastOK = r.Int()
	iv.MaxLag = r.Int()
	iv.Connections = int(r.Int())
	iv.Gaps = ReadGaps(r)
	iv.ProbeGaps = ReadGaps(r)
	iv.PartGaps = readPartGaps(r)
	iv.Stalls = ReadStalls(r)
	iv.Unsettled = r.Bool()
	iv.Tallies = codec.ReadList(r, 1, func(n *uint64) { *n = r.Uint() })
	iv.Shards = ReadShards(r, nil)
	iv.ShardGaps = readShardGaps(r)
	iv.ProbeShards = ReadShards(r, nil)
	iv.ProbeShardGaps = readShardGaps(r)
	iv.Lost = ReadLost(r)
	iv.LedgerChecks = codec.ReadList(r, 3, func(c *LedgerCheck) { ReadCheck(r, c) })
	iv.Servers = readServers(r)
	iv.Unobserved = ReadUnobserved(r)
	iv.Agents = readAgents(r)
	return r.End()
}

// minOpSize is the length of an empty Op: nine counts, no class, three empty histograms.
const minOpSize = 9 + 1 + 3

func appendOp(dst []byte, op *Op) []byte {
	for _, p := range op.Figures() {
		dst = codec.AppendUint(dst, *p)
	}
	dst = AppendClasses(dst, &op.Errors)
	for _, h := range op.Histograms() {
		dst = codec.AppendUint(dst, uint64(len(*h)))
		next := 0
		for _, c := range *h {
			dst = codec.AppendUint(dst, uint64(int(c.Index)-next))
			dst = codec.AppendUint(dst, uint64(c.Count))
			next = int(c.Index) + 1
		}
	}
	return dst
}

func readOp(r *codec.Reader, op *Op) {
	for _, p := range op.Figures() {
		*p = r.Uint()
	}
	op.Errors = [NumClasses]uint64{}
	ReadClasses(r, &op.Errors)
	for _, h := range op.Histograms() {
		n := r.Count(2)
		*h = slices.Grow((*h)[:0], n)[:n]
		next := uint64(0)
		for i := range *h {
			(*h)[i], next = readBucket(r, next)
		}
	}
}

// bucket reads one cell, whose index is at least next, and returns the minimum index of the
// following cell.
func readBucket(r *codec.Reader, next uint64) (histogram.Bucket, uint64) {
	step, count := r.Uint(), r.Uint()
	index := next + step
	if step >= histogram.Cells || index >= histogram.Cells {
		r.Fail("cell %d outside the layout", index)
		return histogram.Bucket{}, 0
	}
	if count == 0 || count > math.MaxUint32 {
		r.Fail("cell with count %d", count)
		return histogram.Bucket{}, 0
	}
	return histogram.Bucket{Index: uint16(index), Count: uint32(count)}, index + 1
}

// AppendClasses writes a bit set of the non-zero classes, followed by their counts.
func AppendClasses(dst []byte, errs *[NumClasses]uint64) []byte {
	var set uint64
	for c, n := range errs {
		if n > 0 {
			set |= 1 << c
		}
	}
	dst = codec.AppendUint(dst, set)
	for _, n := range errs {
		if n > 0 {
			dst = codec.AppendUint(dst, n)
		}
	}
	return dst
}

// ReadClasses reads the output of AppendClasses: it sets the classes that have a count.
func ReadClasses(r *codec.Reader, errs *[NumClasses]uint64) {
	set := r.Uint()
	if set >= 1<<NumClasses {
		r.Fail("unknown class of error")
		return
	}
	for c := range errs {
		if set&(1<<c) != 0 {
			errs[c] = r.Uint()
		}
	}
}
