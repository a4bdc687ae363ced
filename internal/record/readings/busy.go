// Package readings keeps what was read of servers, load generators and observed pods during a run,
// in bounded memory: in a long run, or of many processes, it keeps fewer readings, each with the
// extremes of those that it stands for.
package readings

import "github.com/redquake/redquake/internal/record"

// The figures by which a stretch is the busiest one.
func cpu(b *record.Busy) int64 {
	return b.CPU
}

func mainThread(b *record.Busy) int64 {
	return b.MainThread
}

func throttled(b *record.Busy) int64 {
	return b.Throttled
}

// busier returns of two stretches the one with more of a figure per second, and of equal ones the
// earlier; none is the least, as is one without any.
func busier(a, b record.Busy, figure func(*record.Busy) int64) record.Busy {
	if a.To > b.To {
		a, b = b, a
	}
	if perSecond(&b, figure) > perSecond(&a, figure) {
		return b
	}
	if figure(&a) == 0 {
		return record.Busy{}
	}
	return a
}

func perSecond(b *record.Busy, figure func(*record.Busy) int64) float64 {
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

// recent are the readings of a process by which a further one ends a stretch: they begin with the
// last one that is BusyStretch older, and are recentStep apart.
type recent []counters

const recentStep = record.BusyStretch / 10

// add adds a reading and returns the shortest stretch of BusyStretch or more that ends with it;
// none if there are not enough readings. A reading that is not later than the last one is ignored,
// and one of another process begins anew.
func (r *recent) add(now counters) record.Busy {
	list := *r
	if n := len(list); n > 0 {
		switch last := list[n-1]; {
		case now.at <= last.at:
			return record.Busy{}
		case now.cpu < last.cpu:
			list = nil
		}
	}
	n := len(list)
	if n > 1 && list[n-1].at-list[n-2].at < int64(recentStep) {
		list = list[:n-1]
	}
	list = append(list, now)
	for len(list) > 1 && now.at-list[1].at >= int64(record.BusyStretch) {
		list = list[1:]
	}
	*r = list
	if now.at-list[0].at < int64(record.BusyStretch) {
		return record.Busy{}
	}
	return now.since(&list[0])
}

func (c *counters) since(before *counters) record.Busy {
	micros := func(a, b float64) int64 { return int64(max(0, b-a)*1e6 + 0.5) }
	return record.Busy{
		From:       before.at,
		To:         c.at,
		CPU:        micros(before.cpu, c.cpu),
		MainThread: micros(before.mainThread, c.mainThread),
		Throttled:  micros(before.throttled, c.throttled),
		Commands:   max(0, c.commands-before.commands),
	}
}

func countersOfAgent(a *record.AgentUse) counters {
	return counters{
		at:        a.At,
		cpu:       a.CPUSeconds,
		throttled: a.ThrottledSeconds,
	}
}

func countersOfServer(s *record.Server) counters {
	return counters{
		at:         s.At,
		cpu:        s.CPUSeconds,
		mainThread: s.CPUMainThreadSeconds,
		commands:   s.CommandsProcessed,
	}
}
