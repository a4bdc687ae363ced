package record

import (
	"math"
	"slices"

	"github.com/redquake/redquake/internal/record/histogram"
)

// intervalVersion is the first byte of an encoded interval.
const intervalVersion = 8

// AppendInterval appends an interval in the form that pods send: a version byte, then numbers as varints and bucket indices as differences.
// It has no terminator: the transport frames it.
func AppendInterval(dst []byte, iv *Interval) []byte {
	dst = append(dst, intervalVersion)
	dst = appendInt(dst, iv.Index)
	dst = appendUint(dst, uint64(iv.Pods))
	dst = appendUint(dst, uint64(len(iv.Ops)))
	for i := range iv.Ops {
		dst = appendOp(dst, &iv.Ops[i])
	}
	dst = appendOp(dst, &iv.Probe)
	for _, at := range [...]int64{iv.FirstError, iv.LastError, iv.FirstOK, iv.LastOK, iv.MaxLag, int64(iv.Connections)} {
		dst = appendInt(dst, at)
	}
	dst = appendGaps(dst, iv.Gaps)
	dst = appendGaps(dst, iv.ProbeGaps)
	dst = appendPartGaps(dst, iv.PartGaps)
	dst = appendStalls(dst, iv.Stalls)
	dst = appendBool(dst, iv.Unsettled)
	dst = appendList(dst, iv.Tallies, func(dst []byte, n *uint64) []byte { return appendUint(dst, *n) })
	dst = appendShards(dst, iv.Shards, nil)
	dst = appendShardGaps(dst, iv.ShardGaps)
	dst = appendShards(dst, iv.ProbeShards, nil)
	dst = appendShardGaps(dst, iv.ProbeShardGaps)
	dst = appendLost(dst, iv.Lost)
	dst = appendList(dst, iv.LedgerChecks, appendCheck)
	dst = appendServers(dst, iv.Servers)
	dst = appendUnobserved(dst, iv.Unobserved)
	return appendAgents(dst, iv.Agents)
}

// DecodeInterval reads what AppendInterval wrote. Any other input gives an error that wraps ErrCorrupt. Allocations are
// proportional to the input's length. Empty lists are decoded as nil.
func DecodeInterval(b []byte) (Interval, error) {
	var iv Interval
	if err := iv.Decode(b); err != nil {
		return Interval{}, err
	}
	return iv, nil
}

// Decode is DecodeInterval into an existing interval. It reuses the memory of its operations and histograms, so that decoding many intervals
// allocates almost nothing. After an error the contents are undefined, but the interval can be reused.
func (iv *Interval) Decode(b []byte) error {
	if len(b) == 0 || b[0] != intervalVersion {
		r := reader{}
		r.fail("not an interval of version %d", intervalVersion)
		return r.err
	}
	r := reader{rest: b[1:]}
	iv.Index = r.int()
	iv.Pods = r.small()
	n := r.count(minOpSize)
	if n > cap(iv.Ops) {
		iv.Ops = append(iv.Ops[:cap(iv.Ops)], make([]Op, n-cap(iv.Ops))...)
	}
	iv.Ops = iv.Ops[:n]
	for i := range iv.Ops {
		r.op(&iv.Ops[i])
	}
	r.op(&iv.Probe)
	iv.FirstError, iv.LastError, iv.FirstOK, iv.LastOK, iv.MaxLag = r.int(), r.int(), r.int(), r.int(), r.int()
	iv.Connections = int(r.int())
	iv.Gaps = r.gaps()
	iv.ProbeGaps = r.gaps()
	iv.PartGaps = r.partGaps()
	iv.Stalls = r.stalls()
	iv.Unsettled = r.bool()
	iv.Tallies = readList(&r, 1, func(n *uint64) { *n = r.uint() })
	iv.Shards = r.shards(nil)
	iv.ShardGaps = r.shardGaps()
	iv.ProbeShards = r.shards(nil)
	iv.ProbeShardGaps = r.shardGaps()
	iv.Lost = r.lost()
	iv.LedgerChecks = readList(&r, 3, r.check)
	iv.Servers = r.servers()
	iv.Unobserved = r.unobserved()
	iv.Agents = r.agents()
	if len(r.rest) > 0 {
		r.fail("%d bytes too many", len(r.rest))
	}
	return r.err
}

// small reads a number that fits an int of 32 bits.
func (r *reader) small() int {
	v := r.uint()
	if v > math.MaxInt32 {
		r.fail("number %d too large", v)
		return 0
	}
	return int(v)
}

// minOpSize is the length of an empty Op: nine counts, no class, three empty histograms.
const minOpSize = 9 + 1 + 3

func appendOp(dst []byte, op *Op) []byte {
	for _, p := range op.figures() {
		dst = appendUint(dst, *p)
	}
	dst = appendClasses(dst, &op.Errors)
	for _, h := range op.histograms() {
		dst = appendUint(dst, uint64(len(*h)))
		next := 0
		for _, c := range *h {
			dst = appendUint(dst, uint64(int(c.Index)-next))
			dst = appendUint(dst, uint64(c.Count))
			next = int(c.Index) + 1
		}
	}
	return dst
}

func (r *reader) op(op *Op) {
	for _, p := range op.figures() {
		*p = r.uint()
	}
	op.Errors = [NumClasses]uint64{}
	r.classes(&op.Errors)
	for _, h := range op.histograms() {
		n := r.count(2)
		*h = slices.Grow((*h)[:0], n)[:n]
		next := uint64(0)
		for i := range *h {
			(*h)[i], next = r.bucket(next)
		}
	}
}

// bucket reads one cell, whose index is at least next, and returns the minimum index of the following cell.
func (r *reader) bucket(next uint64) (histogram.Bucket, uint64) {
	step, count := r.uint(), r.uint()
	index := next + step
	if step >= histogram.Cells || index >= histogram.Cells {
		r.fail("cell %d outside the layout", index)
		return histogram.Bucket{}, 0
	}
	if count == 0 || count > math.MaxUint32 {
		r.fail("cell with count %d", count)
		return histogram.Bucket{}, 0
	}
	return histogram.Bucket{Index: uint16(index), Count: uint32(count)}, index + 1
}

// appendClasses writes a bit set of the non-zero classes, followed by their counts.
func appendClasses(dst []byte, errs *[NumClasses]uint64) []byte {
	var set uint64
	for c, n := range errs {
		if n > 0 {
			set |= 1 << c
		}
	}
	dst = appendUint(dst, set)
	for _, n := range errs {
		if n > 0 {
			dst = appendUint(dst, n)
		}
	}
	return dst
}

func (r *reader) classes(errs *[NumClasses]uint64) {
	set := r.uint()
	if set >= 1<<NumClasses {
		r.fail("unknown class of error")
		return
	}
	for c := range errs {
		if set&(1<<c) != 0 {
			errs[c] = r.uint()
		}
	}
}
