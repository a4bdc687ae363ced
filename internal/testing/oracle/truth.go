package oracle

import (
	"math"
	"slices"
	"time"
)

// Range is what is true of a figure: all durations in seconds. It is not a number where the truth has two sides: what
// the server could not do, and what clients can have seen of it. A figure's bounds must reach into it.
type Range struct {
	Lo, Hi float64
	// Unseen allows that nothing is claimed, as no request needs to have met it.
	Unseen bool
	// None is the truth of what did not happen: nothing may be claimed.
	None bool
}

// Truth is what is true of the figures of a history, by their names.
type Truth map[string]Range

// Names of figures. Those of parts are under outages; the dip and the outage are the worst of all.
const (
	Outage        = "outage"
	OutageReads   = "outages.reads"
	OutageWrites  = "outages.writes"
	OutageShard   = "outages.shard"
	OutageProbe   = "outages.probe"
	OutageLoad    = "outages.load"
	OutageGets    = "operations.get.outage"
	OutageSets    = "operations.set.outage"
	TotalOutage   = "totalOutage"
	Recovery      = "recoveryTime"
	TimeToImpact  = "timeToImpact"
	Dip           = "dip"
	LostRequests  = "lostRequests"
	Errors        = "errors"
	BaselineRate  = "baselineRate"
	Throughput    = "throughput"
	ErrorRate     = "errorRate"
	LostWrites    = "lostWrites"
	LostHarmless  = "lostWrites.harmless"
	LostInTheLoad = "lostWrites.load"
)

// What of a history need not be seen, or may last longer for clients than for the servers.
const (
	// mean times between requests: after so many a request was surely due, if they come evenly
	evenly   = 2.5
	randomly = 14                    // the same if they come at random: one pause in a million is longer
	brief    = 12 * time.Millisecond // the longest time for which a request may wait though the server serves
	// from the end of a refusal to the next dial: at most 50 ms, beside the time that a dial takes
	redial = 120 * time.Millisecond
	settle = 3 * time.Millisecond // until what was held has been answered
	// what begins a second after the fault and is shorter need not keep a load from being recovered
	late = 50 * time.Millisecond
)

const (
	read = iota
	write
	kinds
)

// reckoner reckons the truth of one history.
type reckoner struct {
	h    *History
	down [][kinds]spans // by shard: when reads and writes cannot succeed
	// late is by how much longer than the servers were down clients may have had no success.
	late time.Duration
}

// TruthOf reckons what is true of a history, but for the number of writes that were lost in it.
func TruthOf(h *History, lost int) Truth {
	r := newReckoner(h)
	t := Truth{}
	seen, all := r.troubles(true), r.troubles(false)
	first, last := recovery(h, seen), recovery(h, all)
	first, last = min(first, last), max(first, last)
	t[Recovery] = r.recoveryRange(first, last)
	end := min(last+r.late, h.deadline())
	r.outages(t, min(first, h.deadline()), end)
	r.impact(t, first)
	r.rates(t, min(first, h.deadline()), end)
	r.wholeLoad(t)
	if h.Ledger > 0 {
		n := float64(lost)
		t[LostInTheLoad] = Range{Lo: n, Hi: n, None: lost == 0}
		t[LostWrites] = Range{Lo: n, Hi: n, None: lost == 0}
		if h.Harmless > 0 {
			t[LostHarmless] = Range{None: true}
		}
	}
	return t
}

func newReckoner(h *History) *reckoner {
	r := &reckoner{h: h, down: make([][kinds]spans, h.Shards)}
	for _, e := range h.Events {
		for shard := range r.down {
			for kind := range kinds {
				if e.At >= 0 && e.breaks(shard, kind) {
					r.down[shard][kind] = union(0, r.down[shard][kind], spans{{e.At, min(e.end(), h.Observed)}})
				}
			}
		}
	}
	r.late = r.lateness()
	return r
}

// lateness is late, by what keeps requests from a server that serves again: dials, and those that it has to answer
// before.
func (r *reckoner) lateness() (late time.Duration) {
	h := r.h
	longest := time.Duration(0)
	for _, d := range r.down { // several stops in a row together, too
		longest = max(longest, d[read].longest(), d[write].longest())
	}
	dialled := min(h.Timeout, time.Second) - 10*time.Millisecond
	users, waits := float64(h.Users), longest+time.Duration(h.Users)*h.Cost
	for _, e := range h.Events {
		if e.Way == Refuse || e.Way <= Hold && e.For > dialled {
			late = redial // connections have to be made anew
		}
		if h.slow(e) > 0 {
			waits = max(waits, h.queued(e))
		}
	}
	if waits > dialled {
		late = redial
		users *= 3 // with their greetings, and requests that nobody waits for any more
	}
	for _, e := range h.Events {
		if h.slow(e) > 0 && late >= redial { // new connections are greeted as slowly
			late += 3 * h.slow(e)
		}
		if h.slow(e) > 0 { // the probe waits, too, and one request takes long after the end
			longest = max(longest, e.For)
			late = max(late, h.slowest(e))
		}
	}
	// requests, and dials of the probe, which the servers answer one by one
	waiting := users + 10 + 2*min(h.Probe*longest.Seconds(), 20)
	if h.Probe*longest.Seconds() > 1 {
		waiting += 2 * float64(h.Users) // each of these dials waits behind all users, and so does its request
	}
	return late + settle + time.Duration(waiting*float64(h.Cost))
}

// breaks reports whether requests of a kind to a shard cannot succeed during an event.
func (e Event) breaks(shard, kind int) bool {
	switch {
	case e.Way >= Lower, e.Only != All && e.Only != shard:
		return false
	case e.Way == ReadOnly:
		return kind == write
	case e.Way == FailReads:
		return kind == read
	}
	return true
}

// hangs reports whether the users of a closed loop wait in an event, and ask nothing else.
func (e Event) hangs() bool {
	return e.Way <= Refuse
}

// shareOf is the share of the requests that are of a kind.
func (h *History) shareOf(kind int) float64 {
	writes := h.Ledger + (1-h.Ledger)*float64(h.Writes)/float64(h.Reads+h.Writes)
	if kind == write {
		return writes
	}
	return 1 - writes
}

// baseline is the rate before t0, in successes/s. In a closed loop a single server is always busy, with the probe, too.
// With several it depends on chance how many are: then ok is false.
func (h *History) baseline() (rate float64, ok bool) {
	if h.Rate > 0 {
		return h.Rate, true
	}
	return 1/h.Cost.Seconds() - h.Probe, h.Shards == 1
}

// mean is about the mean time between the requests of a share of the load.
func (h *History) mean(share float64) time.Duration {
	rate, _ := h.baseline()
	if h.Rate == 0 { // users may gather at one of the shards
		rate *= 0.5
	}
	return time.Duration(float64(time.Second) / (rate * share))
}

// pause is the longest time between two requests of a share of the load.
func (h *History) pause(share float64) time.Duration {
	if share == 1 { // a load pod notes no gap of less than two of its own mean times
		return time.Duration(evenly * float64(h.mean(share)) * float64(h.Pods))
	}
	return time.Duration(randomly * float64(h.mean(share)))
}

// present lists the kinds that the load has.
func (h *History) present() (list []int) {
	for _, kind := range []int{read, write} {
		if h.shareOf(kind) > 0 {
			list = append(list, kind)
		}
	}
	return list
}

// all is when no request of some kinds to any shard could succeed.
func (r *reckoner) all(of ...int) spans {
	down := spans{{-time.Hour, time.Hour}}
	for shard := range r.down {
		for _, kind := range of {
			down = intersect(down, r.down[shard][kind])
		}
	}
	return down
}

// any is when some request could not succeed.
func (r *reckoner) any() (down spans) {
	for shard := range r.down {
		for _, kind := range r.h.present() {
			down = union(0, down, r.down[shard][kind])
		}
	}
	return down
}

// noticed returns the stretches in which a request of a share of the load was surely due and waited in vain.
func (r *reckoner) noticed(down spans, share float64) spans {
	least := r.h.pause(share) + brief + time.Duration(r.h.Users)*r.h.Cost // a request may wait for those of all users
	return slices.DeleteFunc(slices.Clone(down), func(s span) bool { return s.length()-r.h.away(s) < least })
}

// away is for how long load generators may have asked for nothing in a stretch, as they did not run.
func (h *History) away(s span) (sum time.Duration) {
	for _, e := range h.Events {
		within := spans{{e.At, e.end()}}.within(s)
		switch e.Way {
		case Stall:
			sum += within
		case Starve:
			sum += max(min(within, timeSlice), time.Duration(float64(within)*e.Share))
		}
	}
	return sum
}

// matters leaves out the stretches that begin late and are so short that they need not keep a load from being
// recovered.
func (r *reckoner) matters(down spans, share float64) spans {
	least := late + r.h.pause(share) + brief
	usual := time.Duration(0) // without a fault
	for _, e := range r.h.Events {
		if e.At < 0 && e.hangs() {
			usual = max(usual, e.For+r.h.pause(share)+brief)
		}
	}
	return slices.DeleteFunc(down, func(s span) bool {
		return s.length() < usual || s.from >= r.h.SeenAt+time.Second-settle && s.length() < least
	})
}

// troubles are the stretches after t0 in which something was wrong with the load; with surely, those that requests have
// surely met.
func (r *reckoner) troubles(surely bool) (found spans) {
	for shard := range r.down {
		for _, kind := range r.h.present() {
			down := r.down[shard][kind]
			if surely {
				down = r.matters(r.noticed(r.h.parted(down), r.h.shareOf(kind)/float64(r.h.Shards)),
					r.h.shareOf(kind)/float64(r.h.Shards))
			}
			found = union(0, found, down)
		}
	}
	if down := r.all(r.h.present()...); surely {
		found = union(0, found, r.matters(r.noticed(r.h.parted(down), 1), 1))
	}
	for _, low := range r.lowerings(surely, r.any()) {
		found = union(0, found, low)
	}
	return found
}

// lowerings are the stretches in which the level was so low that it mattered. Surely, it matters where windows are
// lower by more than a tenth because of it alone, on any grid of intervals, and by a request of each load pod beside.
func (r *reckoner) lowerings(surely bool, down spans) (found []spans) {
	rate, _ := r.h.baseline()
	least := 0.1 + float64(r.h.Pods+1)/rate + r.h.drift()
	for _, e := range r.h.Events {
		if e.Way != Lower || e.At < 0 {
			continue
		}
		all := spans{{e.At, min(e.end(), r.h.Observed)}}
		if !surely {
			if r.h.slow(e) > 0 || r.deepest(e) > 0.1-r.h.drift() { // the baseline is the median of a level that drifts
				found = append(found, all)
			}
			continue
		}
		for _, s := range subtract(all, down) {
			from := s.from + time.Duration(least/e.Share*float64(time.Second)) + interval
			if from < min(s.to, s.from+time.Second) {
				found = append(found, spans{{from, s.to}})
			}
		}
	}
	return found
}

// deepest is the largest share of the successes of a second that can be missing while an event lowers the level,
// because of it and of what happened shortly before or after.
func (r *reckoner) deepest(e Event) (share float64) {
	for from := e.At - time.Second; from < e.end(); from += interval / 2 {
		w := span{from, from + time.Second}
		missing := r.deficit(w, kinds)
		if r.affected(w) > 0 {
			missing += r.late.Seconds()
		}
		share = max(share, missing)
	}
	return share
}

// slow is for how long the load, or its reads or writes, may have no success while an event lowers the level, as each
// request takes longer than usual; 0 = nobody can tell.
func (h *History) slow(e Event) time.Duration {
	const least = 5 * time.Millisecond // of a gap
	one := h.slowest(e)
	chance := len(h.present()) == kinds && e.Share > 0.1 // several of one kind in a row
	if e.Way == Lower && e.At >= 0 && (2*one > least || chance) {
		gap := h.queued(e)
		if gap > h.Timeout { // nothing is answered in time
			gap += e.For
		}
		return gap
	}
	return 0
}

// queued is for how long a request waits at most behind those of all users and some of the probe, while an event lowers
// the level.
func (h *History) queued(e Event) time.Duration {
	return time.Duration(h.Users+10) * h.slowest(e)
}

// slowest is how long a command takes at most while an event lowers the level, and others do.
func (h *History) slowest(e Event) time.Duration {
	cost := float64(h.Cost)
	for _, o := range h.Events {
		if o.Way == Lower && o.At < e.end() && e.At < o.end() {
			cost /= 1 - o.Share
		}
	}
	return time.Duration(cost)
}

// slowed returns when the level is so low that the load may have gaps, and the longest of these.
func (h *History) slowed() (when spans, gap time.Duration) {
	for _, e := range h.Events {
		if one := h.slow(e); one > 0 {
			when, gap = union(0, when, spans{{e.At, e.end()}}), max(gap, one)
		}
	}
	return when, gap
}

// deadline is the latest recovery that counts: sums end there without one.
func (h *History) deadline() time.Duration {
	return h.Observed - h.Hold - time.Second
}

// never is the recovery of a load that does not recover.
const never = time.Duration(math.MaxInt64 / 4)

// seconds is an instant in seconds, infinite if it is never.
func seconds(at time.Duration) float64 {
	if at == never {
		return math.Inf(1)
	}
	return at.Seconds()
}

// recovery is the end of the last trouble before a time of Hold without any, which must last for Hold after SeenAt,
// too.
func recovery(h *History, troubles spans) time.Duration {
	at := time.Duration(0)
	for _, s := range troubles {
		if s.from > max(at, h.SeenAt)+h.Hold {
			break
		}
		at = max(at, s.to)
	}
	if at+h.Hold > h.Observed {
		return never
	}
	return at
}

func (r *reckoner) recoveryRange(first, last time.Duration) Range {
	if last == never {
		return Range{Lo: seconds(first), Hi: math.Inf(1)}
	}
	for _, e := range r.h.Events {
		if e.Way == Stall && e.At < last+r.late && last > 0 { // the load resumes when its generator does
			last = max(last, e.end())
		}
	}
	out := Range{Lo: first.Seconds(), Hi: (last + r.late).Seconds()}
	if _, known := r.h.baseline(); !known && last > 0 {
		out.Hi += 1 // users may gather at one of the shards, so that the rate is lower for a window longer
	}
	if r.h.Users > 0 && r.h.has(ReadOnly) {
		out.Hi += redial.Seconds() // clients replace their connections, and users wait for them
	}
	if last == 0 {
		out.Hi = 0
	}
	return out
}

// Clear reports whether the history leaves no doubt when the load recovers: no trouble begins just when a recovery has
// held for long enough, and the load is observed for long enough after the last one.
func (h *History) Clear() bool {
	const margin = 1300 * time.Millisecond
	troubles := newReckoner(h).troubles(false)
	at := time.Duration(0)
	for _, s := range troubles {
		due := max(at, h.SeenAt) + h.Hold
		if s.from > due-h.Hold/4 && s.from < due+margin {
			return false
		}
		if s.from > due {
			break
		}
		at = max(at, s.to)
	}
	return at >= h.Observed || max(at, h.SeenAt)+h.Hold+margin < h.Observed
}

// impact sets the time to impact: the first error, or the begin of the first gap.
func (r *reckoner) impact(t Truth, first time.Duration) {
	h := r.h
	earliest, surely := never, never
	until := max(min(first, h.deadline()), min(h.SeenAt+h.Hold, h.deadline())) // what begins later need not be the fault's
	note := func(down spans, share float64) {
		if len(down) > 0 {
			earliest = min(earliest, down[0].from)
		}
		seen := r.noticed(down, share)
		if len(seen) > 0 && seen[0].from < until {
			surely = min(surely, seen[0].from+h.pause(share)+r.late)
		}
	}
	for shard := range r.down {
		for _, kind := range h.present() {
			note(r.down[shard][kind], h.shareOf(kind)/float64(h.Shards))
		}
	}
	note(r.all(h.present()...), 1)
	if slowed, _ := h.slowed(); len(slowed) > 0 {
		earliest = min(earliest, slowed[0].from)
	}
	t[TimeToImpact] = Range{
		Lo:     seconds(earliest),
		Hi:     seconds(surely),
		Unseen: surely == never,
	}
}
