package oracle

import (
	"slices"
	"time"
)

// Minimize returns the shortest history that it finds for which fails is still true: with fewer events, pods and
// shards, and rounder numbers.
func Minimize(h *History, fails func(*History) bool) *History {
	for progress := true; progress; {
		progress = false
		for _, simpler := range simplifications(h) {
			if simpler.Clear() && fails(simpler) {
				h, progress = simpler, true
				break
			}
		}
	}
	return h
}

// simplifications are histories that are simpler by one step, the greatest steps first.
func simplifications(h *History) (list []*History) {
	change := func(f func(*History)) {
		c := *h
		c.Events = slices.Clone(h.Events)
		if f(&c); c.String() != h.String() {
			list = append(list, &c)
		}
	}
	for i := range h.Events {
		change(func(c *History) { c.Events = slices.Delete(c.Events, i, i+1) })
	}
	change(func(c *History) { // what kept the generator from running, all at once
		c.Events = slices.DeleteFunc(c.Events, func(e Event) bool { return e.Way == Stall || e.Way == Starve })
	})
	change(func(c *History) { c.Pods, c.Events = 1, everywhere(c.Events, true) })
	change(func(c *History) { c.Shards, c.Events = 1, everywhere(c.Events, false) })
	change(func(c *History) { c.Probe = 0 })
	change(func(c *History) { c.Reads = min(c.Reads, 1) })
	if h.Writes > 0 {
		change(func(c *History) { c.Reads = 0 })
	}
	change(func(c *History) { c.Users = min(c.Users, 1) })
	change(func(c *History) { c.SeenAt = 0 })
	change(func(c *History) { c.Timeout = time.Second })
	for _, rate := range []float64{100, 1000, 10} { // the first that is possible, or what it is
		if h.Rate == 0 || h.Rate == rate {
			break
		}
		change(func(c *History) { c.Rate = rate })
	}
	for i := range h.Events {
		change(func(c *History) { c.Events[i].Only = All })
		if h.Events[i].Way < Lower {
			change(func(c *History) { c.Events[i].Way = Stop })
		}
		for _, step := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
			change(func(c *History) { c.Events[i].At = c.Events[i].At.Truncate(step) })
			change(func(c *History) { c.Events[i].For = max(c.Events[i].For.Truncate(step), 10*time.Millisecond) })
		}
	}
	change(func(c *History) { c.Observed = min(c.Observed, c.last()+c.Hold+2500*time.Millisecond) })
	return list
}

func (h *History) last() time.Duration {
	last := max(h.SeenAt, h.Harmless)
	for _, e := range h.Events {
		last = max(last, e.end())
	}
	return last.Truncate(interval) + interval
}

// everywhere makes the events of one load pod, or else of one shard, those of all.
func everywhere(events []Event, pods bool) []Event {
	for i := range events {
		of := events[i].Way
		if (of == Stall || of == Starve) == pods {
			events[i].Only = All
		}
	}
	return events
}
