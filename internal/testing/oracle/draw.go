package oracle

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Draw draws history number of a seed.
func Draw(seed, number uint64) *History {
	d := &draw{rand.New(rand.NewPCG(seed, number))}
	for {
		h := d.load()
		switch {
		case h.Ledger > 0:
			d.loss(h)
		case h.Rate == 0 && d.chance(0.15):
			d.drift(h)
		default:
			d.faults(h)
		}
		if d.chance(0.3) {
			d.hiccups(h)
		}
		if d.chance(0.25) {
			d.disturb(h)
		}
		slices.SortStableFunc(h.Events, func(a, b Event) int { return int(a.At - b.At) })
		if h.Clear() {
			return h
		}
	}
}

type draw struct{ *rand.Rand }

func (d *draw) chance(p float64) bool {
	return d.Float64() < p
}

// between is evenly distributed, times is so by its logarithm.
func (d *draw) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Float64()*float64(to-from)).Truncate(time.Microsecond)
}

func (d *draw) times(from, to time.Duration) time.Duration {
	return time.Duration(d.geometric(float64(from), float64(to))).Truncate(time.Microsecond)
}

func (d *draw) geometric(from, to float64) float64 {
	return from * math.Pow(to/from, d.Float64())
}

func pick[T any](d *draw, list ...T) T {
	return list[d.IntN(len(list))]
}

// load draws the load. What is dear in requests is short: a second of 20,000 requests costs as much as a minute of 300.
func (d *draw) load() *History {
	h := &History{
		Pods:    pick(d, 1, 1, 1, 2, 3, 4),
		Shards:  pick(d, 1, 1, 1, 2, 3),
		Timeout: pick(d, 300*time.Millisecond, time.Second, 3*time.Second),
		Probe:   pick(d, 0., 10, 20, 20, 50),
		Reads:   1,
		Writes:  1,
	}
	switch d.IntN(4) {
	case 0:
		h.Reads = 0
	case 1:
		h.Reads = 4
	}
	switch {
	case d.chance(0.3):
		h.Users = pick(d, 1, 2, 4, 8) * h.Pods
		h.Cost = pick(d, time.Millisecond, 2*time.Millisecond, 4*time.Millisecond)
		h.Hold = 2 * time.Second
		h.Probe = min(h.Probe, 20)
	case d.chance(0.05):
		h.Rate, h.Hold = math.Round(d.geometric(3000, 20_000)), time.Second
	case d.chance(0.1):
		h.Rate, h.Hold = math.Round(d.geometric(300, 3000)), 2*time.Second
	default:
		h.Rate, h.Hold = math.Round(d.geometric(2, 300)), 10*time.Second
		if d.chance(0.1) {
			h.Ledger = pick(d, 0.02, 0.1)
		}
	}
	h.Baseline = max(2*h.Hold, 4*time.Second)
	if h.Rate > 0 {
		h.Baseline = max(h.Baseline, time.Duration(math.Ceil(min(110/h.Rate, 60)))*time.Second) // 100 requests
	}
	return h
}

// observe has the load end some time after the last event.
func (d *draw) observe(h *History) {
	last := h.SeenAt
	for _, e := range h.Events {
		last = max(last, e.end())
	}
	h.Observed = (last + h.Hold + 2500*time.Millisecond).Truncate(interval) + interval
}

// faults draws what the fault does: nothing, one or several things.
func (d *draw) faults(h *History) {
	n := pick(d, 0, 1, 1, 1, 1, 2, 2, 3, 4)
	longest := min(h.Timeout*5/2, 3*time.Second, h.Hold)
	at := pick(d, 0, 0, d.between(0, 500*time.Millisecond), d.between(0, h.Hold*7/10),
		d.between(time.Second, max(h.Hold*7/10, 1100*time.Millisecond)))
	flapping := d.chance(0.2)
	e := d.event(h)
	for range n {
		if !flapping {
			e = d.event(h)
		}
		e.At, e.For = at, d.times(20*time.Millisecond, longest)
		if e.Way == Lower {
			e.For = d.times(200*time.Millisecond, max(h.Hold*3/2, time.Second))
		}
		h.Events = append(h.Events, e)
		pause := d.times(20*time.Millisecond, h.Hold*7/10)
		if d.chance(0.2) {
			pause = -min(e.For/2, pause) // they overlap
		}
		at = e.end() + pause
	}
	if n > 0 && d.chance(0.2) {
		h.SeenAt = h.Events[d.IntN(n)].At
	}
	d.observe(h)
	if n > 0 && d.chance(0.05) { // the last one does not end
		h.Events[n-1].For = h.Observed - h.Events[n-1].At
	}
}

// event draws what makes the load worse.
func (d *draw) event(h *History) Event {
	e := Event{Way: pick(d, Stop, Stop, Hold, Refuse, Loading, ReadOnly, FailReads), Only: All}
	if h.Reads == 0 && e.Way == FailReads {
		e.Way = Stop
	}
	if h.Shards > 1 && d.chance(0.5) {
		e.Only = d.IntN(h.Shards)
	}
	if h.Rate == 0 && h.Shards == 1 && d.chance(0.3) {
		e.Way = Lower
		e.Share = pick(d, 0.05, 0.15, 0.2, 0.3, 0.5, 0.9)
	}
	return e
}

// loss draws writes that are lost when the first of two faults is injected, or soon after.
func (d *draw) loss(h *History) {
	h.Harmless = d.between(2*time.Second, 15*time.Second)
	if d.chance(0.8) {
		back := d.between(100*time.Millisecond, h.Baseline)
		end := d.between(0, time.Second)
		h.Events = []Event{{Way: Lose, At: end - back, For: back, Only: All}}
	}
	h.Observed = (h.Harmless + h.Hold + 3*time.Second).Truncate(interval)
}

// drift draws a level that changes before the fault, by so little that it does not matter or by so much that it does.
func (d *draw) drift(h *History) {
	h.Events = []Event{
		{Way: Drift, At: -h.Baseline, For: h.Baseline, Only: All, Share: pick(d, -0.03, 0.03, -0.25, -0.15, 0.15, 0.3)},
	}
	if h.Shards == 1 && d.chance(0.5) {
		h.Events = append(h.Events, Event{
			Way:   Lower,
			For:   d.times(500*time.Millisecond, 5*time.Second),
			Only:  All,
			Share: pick(d, 0.15, 0.2, 0.5),
		})
	}
	d.observe(h)
}

// hiccups draws short stops before the fault.
func (d *draw) hiccups(h *History) {
	n := pick(d, 1, 1, 2, 3)
	if h.Rate == 0 {
		n = 1 // its baseline is short, and lower by more of them
	}
	for range n {
		at := -d.between(1500*time.Millisecond, h.Baseline-time.Second)
		h.Events = append(h.Events, Event{
			Way:  pick(d, Stop, Hold),
			At:   at,
			For:  d.between(5*time.Millisecond, 95*time.Millisecond),
			Only: All,
		})
	}
}

// disturb draws times in which load generators do not run.
func (d *draw) disturb(h *History) {
	one := All
	if h.Pods > 1 && d.chance(0.5) {
		one = d.IntN(h.Pods)
	}
	if d.chance(0.3) {
		if h.Rate == 0 && d.chance(0.7) {
			h.Users = h.Pods // several users would keep the servers busy while their generator waits for a CPU
		}
		from := pick(d, -h.Baseline, 0)
		h.Events = append(h.Events, Event{
			Way:   Starve,
			At:    from,
			For:   h.Observed - from,
			Only:  one,
			Share: pick(d, 0.3, 0.5, 0.75),
		})
		return
	}
	switch d.IntN(3) {
	case 0: // once
		h.Events = append(h.Events, Event{
			Way:  Stall,
			At:   d.between(-h.Baseline/2, h.Observed-time.Second),
			For:  d.times(6*time.Millisecond, 1500*time.Millisecond),
			Only: one,
		})
	case 1: // about an event
		e := h.Events[:min(1, len(h.Events))]
		at := time.Duration(0)
		if len(e) > 0 {
			at = pick(d, e[0].At, e[0].end())
		}
		length := d.times(10*time.Millisecond, 800*time.Millisecond)
		h.Events = append(h.Events, Event{
			Way:  Stall,
			At:   at - d.between(0, length),
			For:  length,
			Only: one,
		})
	default: // again and again after the fault
		length := d.between(100*time.Millisecond, 400*time.Millisecond)
		for at := d.between(0, 2*time.Second); at+length < h.Observed-time.Second; at += time.Second {
			h.Events = append(h.Events, Event{Way: Stall, At: at, For: length, Only: one})
		}
	}
}
