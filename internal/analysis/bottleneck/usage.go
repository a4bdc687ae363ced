package bottleneck

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
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

func (u usage) cores() float64 {
	return u.cpu / u.seconds
}

// mainThread is the CPU usage of the main thread in cores. If the server does not report it, it is
// that of the whole process: such versions have little more than one thread.
func (u usage) mainThread() float64 {
	if u.main > 0 {
		return u.main / u.seconds
	}
	return u.cores()
}

// timeline is the CPU usage of a process over the steady part, and over the busiest stretches in
// it.
type timeline struct {
	total     usage
	stretches []usage
}

func (t *timeline) record(from, to int64, u usage) {
	u.seconds = time.Duration(to - from).Seconds()
	t.total.add(u)
}

// stretch adds a stretch if it is within one steady window: a component that is at its limit in a
// fault does not limit the load otherwise.
func (t *timeline) stretch(b *record.Busy, steady []summary.Window) {
	if b.Length() == 0 || !slices.ContainsFunc(steady, func(w summary.Window) bool {
		return time.Duration(b.From) >= w.From && time.Duration(b.To) <= w.To+tolerance
	}) {
		return
	}
	seconds := func(micros int64) float64 { return float64(micros) / 1e6 }
	t.stretches = append(t.stretches, usage{
		b.Length().Seconds(), seconds(b.CPU),
		seconds(b.MainThread), seconds(b.Throttled), b.Commands,
	})
}

// busiest returns the usage over the stretch of record.BusyStretch or little more in which share is
// highest: a component that is at its limit for some seconds limits the load, whatever its mean. It
// is the total if there is no stretch of that length.
func (t *timeline) busiest(share func(usage) float64) usage {
	if len(t.stretches) == 0 {
		return t.total
	}
	return slices.MaxFunc(t.stretches, func(a, b usage) int { return cmp.Compare(share(a), share(b)) })
}

// compared returns the share of a stretch as text, and that of the total if it differs: "98% of it
// over its busiest 5s, 44% on average".
func (t *timeline) compared(worst usage, share func(usage) float64, of string) string {
	most, mean := percent(share(worst)), percent(share(t.total))
	if most == mean {
		return most + of
	}
	return fmt.Sprintf("%s%s over its busiest %.0fs, %s on average", most, of, worst.seconds, mean)
}
