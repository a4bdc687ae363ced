package gaps

import (
	"sync"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/record"
)

// Shared are the gap logs of a probe, or of callers, which send each request in a goroutine.
type Shared struct {
	mu       sync.Mutex
	logs     Logs
	inFlight []int // by part of the load
}

// NewShared returns the gap logs of one such client.
func NewShared(t *Thresholds, sharded bool) *Shared {
	return &Shared{logs: NewLogs(t, sharded), inFlight: make([]int, len(t.parts))}
}

// Source makes the logs a source of a merge. What a goroutine reads is reported at once.
func (g *Shared) Source() Source {
	return Source{
		Lock:    &g.mu,
		Logs:    &g.logs,
		Settled: func() int64 { return clock.Never },
	}
}

// Begin notes that a request of these parts was sent.
func (g *Shared) Begin(parts uint64, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, 1)
	g.wait(at)
}

// End notes the outcome of a request that was sent at an instant, and the instant at which it was
// read.
func (g *Shared) End(parts uint64, r Receipt, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.Add([]Receipt{r})
	g.wait(read)
}

// Broken notes that the connection of a request broke, which was in flight at the instant until.
func (g *Shared) Broken(parts uint64, shard int, until, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.Lost(shard, until)
	g.logs.Refused(shard, until)
	g.wait(read)
}

func (g *Shared) count(parts uint64, by int) {
	for i := range g.inFlight {
		g.inFlight[i] += by * int(parts>>i&1)
	}
}

func (g *Shared) wait(at int64) {
	var parts uint64
	for i, n := range g.inFlight {
		if n > 0 {
			parts |= 1 << i
		}
	}
	g.logs.Waiting(at, parts)
}

// Parts are the bits of the gap logs: bit 0 is the load's, bit 1+p that of record.Part p. A load
// with one operation has only the first.
type Parts struct {
	Count int
	Of    []uint64 // by operation
}

// PartsOf returns the parts of a load, by whether each of its operations only reads.
func PartsOf(readOnly []bool) Parts {
	p := Parts{Count: 1, Of: make([]uint64, len(readOnly))}
	for op := range p.Of {
		p.Of[op] = 1
		if len(readOnly) > 1 {
			kind := record.Writes
			if readOnly[op] {
				kind = record.Reads
			}
			p.Of[op] |= 2<<kind | 2<<record.OpPart(op)
		}
	}
	if len(readOnly) > 1 {
		p.Count = 1 + int(record.OpPart(len(readOnly)))
	}
	return p
}

// Receipt is one or several outcomes that were read together.
type Receipt struct {
	Hi     int64  // when they arrived, at the latest
	Lo     int64  // when the first of them arrived, at the earliest
	Surely int64  // when the last of them arrived, at the earliest
	OK     uint64 // the gap logs that have a success; see parts
	// when the last request of the successes was sent; of a closed loop when it was answered
	Since int64
	// since when a request of each of these logs was in flight on its connection; 0 = not known
	Flight int64
	Failed uint64 // the gap logs that have a failure
	Sent   int64  // when the first failed request was sent
	Shard  int
	// Alive is when the server was last heard on the connection of a success before its request was
	// sent, if the client did not send it at once; otherwise 0. early is when the success could have
	// arrived at the earliest, had the client sent it then, and asked is when it was sent: of several
	// such requests, the latest, the earliest and the latest.
	Alive, Early, Asked int64
}

// Receipts are those of one wake-up, in the order in which they were read.
type Receipts []Receipt

// Note adds outcomes. Those read together are one.
func (l *Receipts) Note(a Receipt) {
	if n := len(*l); n > 0 {
		if b := &(*l)[n-1]; b.Hi == a.Hi && b.Shard == a.Shard {
			b.Lo, b.Surely = min(b.Lo, a.Lo), max(b.Surely, a.Surely)
			b.Since = max(b.Since, a.Since) // each part has one that waited for at least as long
			b.Flight = bothFlights(b, &a)
			b.OK |= a.OK
			if b.Failed == 0 || a.Failed != 0 && a.Sent < b.Sent {
				b.Sent = a.Sent
			}
			b.Failed |= a.Failed
			if a.Early > 0 && (b.Early == 0 || a.Early < b.Early) {
				b.Early = a.Early
			}
			b.Alive = max(b.Alive, a.Alive)
			b.Asked = max(b.Asked, a.Asked) // the shortest wait of those that could have been answered early
			return
		}
	}
	*l = append(*l, a)
}

// bothFlights is since when a request of each of the logs of two successes was in flight.
func bothFlights(a, b *Receipt) int64 {
	switch {
	case a.OK == 0, a.OK == b.OK && a.Flight == 0:
		return b.Flight
	case b.OK == 0, a.OK == b.OK && b.Flight == 0:
		return a.Flight
	case a.OK == b.OK:
		return min(a.Flight, b.Flight)
	case a.Flight == 0 || b.Flight == 0:
		return 0
	}
	return max(a.Flight, b.Flight)
}
