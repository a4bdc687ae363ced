package record

import (
	"time"

	"github.com/redquake/redquake/internal/record/codec"
)

// BusyStretch is the shortest time over which the highest use of a process is taken: a process that
// is at its limit for so long limits the load.
const BusyStretch = 5 * time.Second

// Busy is what a process used over BusyStretch, or little more where its readings are further
// apart. The zero value stands for none.
type Busy struct {
	From, To   int64 // nanoseconds since T
	CPU        int64 // of the whole process, microseconds
	MainThread int64 // of a server's main thread, microseconds; 0 if it does not report it
	Throttled  int64 // time that the cgroup throttled a load generator, microseconds
	Commands   int64 // processed by a server
}

// Length is that of the stretch.
func (b *Busy) Length() time.Duration {
	return time.Duration(b.To - b.From)
}

// appendBusy appends a stretch that ends at an instant or before it.
func appendBusy(dst []byte, b *Busy, at int64) []byte {
	dst = codec.AppendUint(dst, uint64(b.To-b.From))
	if b.To == b.From {
		return dst
	}
	for _, v := range [...]int64{at - b.To, b.CPU, b.MainThread, b.Throttled, b.Commands} {
		dst = codec.AppendInt(dst, v)
	}
	return dst
}

func readBusy(r *codec.Reader, at int64) (b Busy) {
	length := int64(r.Uint())
	if length == 0 {
		return b
	}
	b.To = at - r.Int()
	b.From = b.To - length
	b.CPU = r.Int()
	b.MainThread = r.Int()
	b.Throttled = r.Int()
	b.Commands = r.Int()
	if b.From > b.To {
		r.Fail("a stretch of %d ns", length)
	}
	return b
}
