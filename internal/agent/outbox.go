package agent

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/redquake/redquake/internal/record"
)

// frame is one encoded interval of the protocol: uvarint length, then record.AppendInterval's
// bytes.
type frame struct {
	seq  uint64
	data []byte
}

// outbox keeps encoded intervals until they are acknowledged, up to a limit in bytes. The caller
// locks.
type outbox struct {
	frames  []frame // ascending by seq
	bytes   int     // of all frames
	limit   int     // in bytes; beyond it the oldest frames are dropped, but never the newest
	last    uint64  // newest seq ever appended
	lost    uint64  // frames dropped before they were acknowledged
	scratch []byte
}

// append adds an interval; false if it is not newer than the last one and was ignored.
func (r *outbox) append(interval *record.Interval) bool {
	seq := uint64(interval.Index) + 1
	if interval.Index < 0 || seq <= r.last {
		return false
	}
	r.scratch = record.AppendInterval(r.scratch[:0], interval)
	data := make([]byte, 0, binary.MaxVarintLen32+len(r.scratch))
	data = binary.AppendUvarint(data, uint64(len(r.scratch)))
	data = append(data, r.scratch...)
	r.frames = append(r.frames, frame{seq, data})
	r.bytes += len(data)
	r.last = seq

	drop := 0
	for r.bytes > r.limit && drop < len(r.frames)-1 {
		r.bytes -= len(r.frames[drop].data)
		drop++
	}
	r.lost += uint64(drop)
	r.frames = slices.Delete(r.frames, 0, drop)
	return true
}

// acknowledge removes the frames up to seq.
func (r *outbox) acknowledge(seq uint64) {
	n := r.from(seq)
	for _, f := range r.frames[:n] {
		r.bytes -= len(f.data)
	}
	r.frames = slices.Delete(r.frames, 0, n)
}

// after returns frames newer than seq, oldest first, up to about max bytes, and their size. The
// data must not be modified.
func (r *outbox) after(seq uint64, max int) (batch []frame, size int) {
	start := r.from(seq)
	end := start
	for end < len(r.frames) && (end == start || size+len(r.frames[end].data) <= max) {
		size += len(r.frames[end].data)
		end++
	}
	return slices.Clone(r.frames[start:end]), size
}

// from returns the position of the first frame newer than seq.
func (r *outbox) from(seq uint64) int {
	return sort.Search(len(r.frames), func(i int) bool { return r.frames[i].seq > seq })
}
