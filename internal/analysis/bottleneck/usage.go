package bottleneck

import (
	"fmt"
	"time"
)

// usage is the CPU usage of a process over some time.
type usage struct {
	seconds, cpu, main, throttled float64
	commands                      int64
}

func (u *usage) add(o usage) {
	u.seconds += o.seconds
	u.cpu += o.cpu
	u.main += o.main
	u.throttled += o.throttled
	u.commands += o.commands
}

func (u usage) cores() float64 { return u.cpu / u.seconds }

// mainThread is the CPU usage of the main thread in cores. If the server does not report it, it is that of the whole process: such versions have
// little more than one thread.
func (u usage) mainThread() float64 {
	if u.main > 0 {
		return u.main / u.seconds
	}
	return u.cores()
}

// timeline is the CPU usage of a process over the steady part, whole and in pieces.
type timeline struct {
	total  usage
	pieces []piece // by time
}

// piece is the usage between two consecutive readings, in nanoseconds from the start.
type piece struct {
	usage
	from, to int64
}

func (t *timeline) record(from, to int64, u usage) {
	u.seconds = time.Duration(to - from).Seconds()
	t.total.add(u)
	t.pieces = append(t.pieces, piece{u, from, to})
}

// busiest returns the usage over the stretch of stretchLength or little more in which share is highest: a component that is at its limit for some
// seconds limits the load, whatever its mean. It is the total if there is no stretch of that length.
func (t *timeline) busiest(share func(usage) float64) usage {
	worst, found := t.total, false
	for last := range t.pieces {
		var sum usage
		for i := last; i >= 0 && sum.seconds < stretchLength.Seconds(); i-- {
			if i < last && t.pieces[i].to != t.pieces[i+1].from {
				break
			}
			sum.add(t.pieces[i].usage)
		}
		if sum.seconds >= stretchLength.Seconds() && (!found || share(sum) > share(worst)) {
			worst, found = sum, true
		}
	}
	return worst
}

// compared returns the share of a stretch as text, and that of the total if it differs: "98% of it over its busiest 5s, 44% on average".
func (t *timeline) compared(worst usage, share func(usage) float64, of string) string {
	most, mean := percent(share(worst)), percent(share(t.total))
	if most == mean {
		return most + of
	}
	return fmt.Sprintf("%s%s over its busiest %.0fs, %s on average", most, of, worst.seconds, mean)
}

// stretchLength is the length of the time for which a component must be at its limit to count as the bottleneck.
const stretchLength = 5 * time.Second
