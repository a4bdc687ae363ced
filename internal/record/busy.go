package record

import (
	"time"

	"github.com/redquake/redquake/internal/record/codec"
)

// BusyStretch is the shortest time over which the highest use of a process is taken: a process that is at its limit for so long limits the load.
const BusyStretch = 5 * time.Second

// Busy is what a process used over BusyStretch, or little more where its readings are further apart. The zero value stands for none.
type Busy struct {
	From, To   int64 // nanoseconds since T
	CPU        int64 // of the whole process, microseconds
	MainThread int64 // of a server's main thread, microseconds; 0 if it does not report it
	Throttled  int64 // time that the cgroup throttled a load generator, microseconds
	Commands   int64 // processed by a server
}

// Length is that of the stretch.
func (b *Busy) Length() time.Duration { return time.Duration(b.To - b.From) }

// The figures by which a stretch is the busiest one.
func (b *Busy) cpu() int64        { return b.CPU }
func (b *Busy) mainThread() int64 { return b.MainThread }
func (b *Busy) throttled() int64  { return b.Throttled }

// busier returns of two stretches the one with more of a figure per second, and of equal ones the earlier; none is the least, as is one without any.
func busier(a, b Busy, figure func(*Busy) int64) Busy {
	if a.To > b.To {
		a, b = b, a
	}
	if perSecond(&b, figure) > perSecond(&a, figure) {
		return b
	}
	if figure(&a) == 0 {
		return Busy{}
	}
	return a
}

func perSecond(b *Busy, figure func(*Busy) int64) float64 {
	if b.To == b.From {
		return 0
	}
	return float64(figure(b)) / b.Length().Seconds()
}

// counters are those of a process at an instant, each since its start.
type counters struct {
	at                         int64 // nanoseconds since T
	cpu, mainThread, throttled float64
	commands                   int64
}

// recent are the readings of a process by which a further one ends a stretch: they begin with the last one that is BusyStretch older, and are
// recentStep apart.
type recent []counters

const recentStep = BusyStretch / 10

// add adds a reading and returns the shortest stretch of BusyStretch or more that ends with it; none if there are not enough readings. A reading that is
// not later than the last one is ignored, and one of another process begins anew.
func (r *recent) add(now counters) Busy {
	list := *r
	if n := len(list); n > 0 {
		switch last := list[n-1]; {
		case now.at <= last.at:
			return Busy{}
		case now.cpu < last.cpu:
			list = nil
		}
	}
	if n := len(list); n > 1 && list[n-1].at-list[n-2].at < int64(recentStep) {
		list = list[:n-1]
	}
	list = append(list, now)
	for len(list) > 1 && now.at-list[1].at >= int64(BusyStretch) {
		list = list[1:]
	}
	*r = list
	if now.at-list[0].at < int64(BusyStretch) {
		return Busy{}
	}
	return now.since(&list[0])
}

func (c *counters) since(before *counters) Busy {
	micros := func(a, b float64) int64 { return int64(max(0, b-a)*1e6 + 0.5) }
	return Busy{
		From: before.at, To: c.at, CPU: micros(before.cpu, c.cpu), MainThread: micros(before.mainThread, c.mainThread),
		Throttled: micros(before.throttled, c.throttled), Commands: max(0, c.commands-before.commands),
	}
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
	b.CPU, b.MainThread, b.Throttled, b.Commands = r.Int(), r.Int(), r.Int(), r.Int()
	if b.From > b.To {
		r.Fail("a stretch of %d ns", length)
	}
	return b
}
