package oracle

import (
	"math"
	"slices"
	"time"
)

// affected is the share of the requests due in a stretch that could not succeed then.
func (r *reckoner) affected(w span) float64 {
	sum := 0.0
	for shard := range r.down {
		for _, kind := range r.h.present() {
			sum += r.h.shareOf(kind) / float64(r.h.Shards) * r.down[shard][kind].within(w).Seconds()
		}
	}
	return sum / w.length().Seconds()
}

// lowered is by which share of the baseline the level was lower in a stretch, of a load of its own.
func (r *reckoner) lowered(w span) float64 {
	deepest := 0.0
	for _, e := range r.h.Events {
		if e.Way == Lower && e.At >= 0 {
			both := spans{{e.At, e.end()}}.within(w)
			deepest = 1 - (1-deepest)*(1-e.Share*both.Seconds()/w.length().Seconds())
		}
	}
	return deepest
}

// rates sets the figures that depend on the rate: dip, lost requests, baseline. Only a rate of some successes in each
// window says something.
func (r *reckoner) rates(t Truth, first, end time.Duration) {
	h := r.h
	rate, known := h.baseline()
	if !known {
		return
	}
	drift := h.drift()
	t[BaselineRate] = Range{Lo: 0.95 * rate * (1 - h.starvedBefore()) * (1 - drift), Hi: 1.05 * rate * (1 + drift)}
	least, most, lost, surelyLost := 0.0, 0.0, 0.0, 0.0
	parts := append([]int{kinds}, h.present()...)                         // all, and each kind
	for from := time.Duration(0); from < end+interval; from += interval { // the grid is t0's
		w := span{from, from + time.Second}
		for _, kind := range parts {
			most = max(most, r.deficit(w, kind))
		}
		if w.from < first && !r.drains(w) {
			least = max(least, r.deficit(w, kinds)-h.workedOff(w)-h.sentLater(w))
		}
	}
	for from := time.Duration(0); from < end; from += interval {
		one := rate * interval.Seconds() * r.deficit(span{from, from + interval}, kinds)
		if lost += one; from < first {
			surelyLost += one
		}
	}
	if rate >= 40 {
		few := 4 / math.Sqrt(rate*h.smallest())
		chance := 0.0 // how many of a window's requests are of a kind, or go to a shard
		if len(h.present()) == kinds || h.Shards > 1 {
			chance = 1.5 / math.Sqrt(rate)
		}
		t[Dip] = Range{Lo: least - 0.02 - 2/rate - chance, Hi: min(1, most+0.02+2/rate+few+r.late.Seconds())}
	}
	off := float64(len(r.any())+len(h.Events)) * (rate*(2*interval+r.late).Seconds() + float64(h.Pods))
	t[LostRequests] = Range{
		Lo:   0.93*surelyLost - off,
		Hi:   1.07*lost + off + 0.02*rate*end.Seconds(),
		None: lost == 0 && end <= r.late,
	}
	if r.faultless() {
		t[Errors] = Range{None: true}
	}
}

// drift is by how much the level changes before t0.
func (h *History) drift() (share float64) {
	for _, e := range h.Events {
		if e.Way == Drift {
			share = max(share, math.Abs(e.Share))
		}
	}
	return share
}

// starvedBefore is the share of the time for which a load generator did not run before t0: the baseline is what the
// load had even so.
func (h *History) starvedBefore() (share float64) {
	for _, e := range h.Events {
		if e.Way == Starve && e.At < 0 {
			share = max(share, e.Share)
		}
	}
	return share
}

// smallest is the smaller share of reads and writes.
func (h *History) smallest() float64 {
	if len(h.present()) < kinds {
		return 1
	}
	return min(h.shareOf(read), h.shareOf(write))
}

// deficit is the share of the successes of a kind, or of all, that are missing in a stretch.
func (r *reckoner) deficit(w span, kind int) (missing float64) {
	for _, part := range r.h.constant(w) { // what overlaps is missing once
		missing += r.deficitOf(part, kind) * part.length().Seconds() / w.length().Seconds()
	}
	return missing
}

// constant divides a stretch where events begin and end.
func (h *History) constant(w span) spans {
	at := []time.Duration{w.from, w.to}
	for _, e := range h.Events {
		for _, t := range []time.Duration{e.At, e.end()} {
			if t > w.from && t < w.to {
				at = append(at, t)
			}
		}
	}
	slices.Sort(at)
	var parts spans
	for i := range len(at) - 1 {
		if at[i] < at[i+1] {
			parts = append(parts, span{at[i], at[i+1]})
		}
	}
	return parts
}

// deficitOf is that of a stretch in which no event begins or ends.
func (r *reckoner) deficitOf(w span, kind int) float64 {
	down := r.affected(w)
	if kind < kinds {
		one := *r
		one.down = make([][kinds]spans, len(r.down))
		for shard := range r.down {
			one.down[shard][kind] = r.down[shard][kind]
		}
		down = one.affected(w) / r.h.shareOf(kind)
	}
	if r.h.Rate == 0 {
		for _, e := range r.h.Events { // users who wait ask nothing else
			if e.At >= 0 && e.hangs() {
				down = max(down, spans{{e.At, e.end()}}.within(w).Seconds()/w.length().Seconds())
			}
		}
	}
	return 1 - (1-down)*(1-r.lowered(w))
}

// workedOff is the share of a stretch in which a server works off what its users had sent before the network held back
// its replies.
func (h *History) workedOff(w span) (share float64) {
	for _, e := range h.Events {
		if e.Way == Hold && h.Rate == 0 {
			share += min(spans{{e.At, e.end()}}.within(w), time.Duration(h.Users)*h.Cost).Seconds() / w.length().Seconds()
		}
	}
	return share
}

// sentLater is the share of the requests of a stretch that load generators send later, as they do not run: they need
// not meet what breaks others.
func (h *History) sentLater(w span) (share float64) {
	for _, e := range h.Events {
		if e.Way == Stall {
			one := spans{{e.At, e.end()}}.within(w).Seconds() / w.length().Seconds()
			if e.Only != All {
				one /= float64(h.Pods)
			}
			share += one
		}
	}
	return share
}

// faultless reports whether no request can have failed: not even because it took too long.
func (r *reckoner) faultless() bool {
	_, gap := r.h.slowed()
	for _, e := range r.h.Events {
		if e.Way == Stall {
			gap = max(gap, e.For)
		}
	}
	return len(r.any()) == 0 && gap < r.h.Timeout/2
}

// drains reports whether what waited may be answered in a stretch.
func (r *reckoner) drains(w span) bool {
	return r.h.Rate > 0 && slices.ContainsFunc(r.h.Events, func(e Event) bool {
		return e.hangs() && e.end() > w.from &&
			e.end() < w.to+r.late
	})
}

// wholeLoad sets the figures of the load as a whole, with a generator that was not disturbed.
func (r *reckoner) wholeLoad(t Truth) {
	h := r.h
	rate, known := h.baseline()
	if r.faultless() {
		t[ErrorRate] = Range{Hi: 0.0005}
	}
	if !known || h.has(Drift) {
		return
	}
	whole := span{-h.Baseline, h.Observed}
	done := 0.0
	for from := whole.from; from < whole.to; from += interval {
		done += (1 - r.deficit(span{from, from + interval}, kinds)) * interval.Seconds()
	}
	mean := rate * done / whole.length().Seconds()
	most := mean
	if h.Rate > 0 { // what waited is answered later, or is not
		most = rate
	}
	off := float64(len(h.Events)) * rate * (interval + r.late).Seconds() / whole.length().Seconds()
	if h.Shards > 1 || len(h.present()) == kinds { // how many requests go to a shard, or are of a kind, is chance
		off += 3 * math.Sqrt(rate*whole.length().Seconds()) / whole.length().Seconds()
	}
	t[Throughput] = Range{Lo: 0.98*mean - off, Hi: 1.02*most + off}
}
