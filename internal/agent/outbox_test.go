package agent

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
)

func seqs(frames []frame) []uint64 {
	var list []uint64
	for _, f := range frames {
		list = append(list, f.seq)
	}
	return list
}

func filled(t *testing.T, limit int, indices ...int64) *outbox {
	t.Helper()
	r := &outbox{limit: limit}
	for _, i := range indices {
		if !r.append(&record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 1)}) {
			t.Fatalf("interval %d was not accepted", i)
		}
	}
	return r
}

func TestRecordKeepsUntilAcknowledged(t *testing.T) {
	r := filled(t, 1<<20, 0, 1, 2, 3)
	size := len(r.frames[0].data)
	if got := r.append(&record.Interval{Index: 3}); got {
		t.Error("a repeated interval was accepted")
	}
	if got := r.append(&record.Interval{Index: -1}); got {
		t.Error("a negative interval was accepted")
	}
	batch, n := r.after(1, 1<<20)
	if diff := cmp.Diff([]uint64{2, 3, 4}, seqs(batch)); diff != "" || n != 3*size {
		t.Errorf("after 1: %d bytes, want %d; (-want +got)\n%s", n, 3*size, diff)
	}
	r.acknowledge(2)
	if diff := cmp.Diff([]uint64{3, 4}, seqs(r.frames)); diff != "" || r.bytes != 2*size {
		t.Errorf("after the acknowledgement: %d bytes, want %d; (-want +got)\n%s", r.bytes, 2*size, diff)
	}
	r.acknowledge(1) // an earlier acknowledgement changes nothing
	if r.lost != 0 || r.last != 4 || len(r.frames) != 2 {
		t.Errorf("lost %d, last %d, %d frames", r.lost, r.last, len(r.frames))
	}
}

func TestRecordDropsTheOldestBeyondItsLimit(t *testing.T) {
	size := len(filled(t, 1<<20, 0).frames[0].data)
	r := filled(t, 2*size, 0, 1, 2, 3, 4)
	if diff := cmp.Diff([]uint64{4, 5}, seqs(r.frames)); diff != "" || r.lost != 3 || r.bytes != 2*size {
		t.Errorf("lost %d, %d bytes (-want +got)\n%s", r.lost, r.bytes, diff)
	}
	// The newest interval stays, however small the limit.
	if r := filled(t, 1, 0, 1); len(r.frames) != 1 || r.frames[0].seq != 2 || r.lost != 1 {
		t.Errorf("with a tiny limit: %v, lost %d", seqs(r.frames), r.lost)
	}
}

func TestRecordBatches(t *testing.T) {
	r := filled(t, 1<<20, 0, 1, 2)
	size := len(r.frames[0].data)
	for _, c := range []struct {
		after uint64
		max   int
		want  []uint64
	}{
		{0, 2 * size, []uint64{1, 2}},
		{0, 1, []uint64{1}}, // at least one
		{2, 1 << 20, []uint64{3}},
		{3, 1 << 20, nil},
	} {
		batch, _ := r.after(c.after, c.max)
		if diff := cmp.Diff(c.want, seqs(batch)); diff != "" {
			t.Errorf("after %d, max %d (-want +got)\n%s", c.after, c.max, diff)
		}
	}
	length, n := binary.Uvarint(r.frames[0].data)
	iv, err := record.DecodeInterval(r.frames[0].data[n:])
	if err != nil || int(length) != size-n || iv.Index != 0 {
		t.Errorf("frame of %d bytes has length %d after %d; index %d, %v", size, length, n, iv.Index, err)
	}
}
