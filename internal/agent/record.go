package agent

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/redquake/redquake/internal/sample"
)

// frame is one interval as it goes over the wire: uvarint length, then sample.AppendInterval's bytes.
type frame struct {
	seq  uint64
	data []byte
}

// record keeps encoded intervals until they are acknowledged, up to a limit in bytes. The caller locks.
type record struct {
	frames  []frame // ascending by seq
	bytes   int     // of all frames
	limit   int     // in bytes; beyond it the oldest frames go, but never the newest
	last    uint64  // newest seq ever appended
	lost    uint64  // frames forgotten before they were acknowledged
	scratch []byte
}

// append adds an interval. One that is not newer than the last is ignored: false.
func (r *record) append(interval *sample.Interval) bool {
	seq := uint64(interval.Index) + 1
	if interval.Index < 0 || seq <= r.last {
		return false
	}
	r.scratch = sample.AppendInterval(r.scratch[:0], interval)
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

// acknowledge forgets the frames up to seq.
func (r *record) acknowledge(seq uint64) {
	n := r.from(seq)
	for _, f := range r.frames[:n] {
		r.bytes -= len(f.data)
	}
	r.frames = slices.Delete(r.frames, 0, n)
}

// from returns the position of the first frame newer than seq.
func (r *record) from(seq uint64) int {
	return sort.Search(len(r.frames), func(i int) bool { return r.frames[i].seq > seq })
}

// after returns frames newer than seq, oldest first, until they are about max bytes, and their size. The data must not be changed.
func (r *record) after(seq uint64, max int) (batch []frame, size int) {
	start := r.from(seq)
	end := start
	for end < len(r.frames) && (end == start || size+len(r.frames[end].data) <= max) {
		size += len(r.frames[end].data)
		end++
	}
	return slices.Clone(r.frames[start:end]), size
}
