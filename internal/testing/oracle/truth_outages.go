package oracle

import "time"

// scope is a part of the load: some kinds of requests to some shards.
type scope struct {
	kinds  []int
	shards []int
}

// share is its share of the load.
func (h *History) share(of scope) (sum float64) {
	for _, kind := range of.kinds {
		sum += h.shareOf(kind) * float64(len(of.shards)) / float64(h.Shards)
	}
	return sum
}

// when returns when none of the scope's requests could succeed, and when some could not. While those wait, nobody need
// ask for others.
func (r *reckoner) when(of scope) (all, some spans) {
	all = spans{{-time.Hour, time.Hour}}
	for _, shard := range of.shards {
		for _, kind := range of.kinds {
			all = intersect(all, r.down[shard][kind])
			some = union(0, some, r.down[shard][kind])
		}
	}
	return all, some
}

// released is for how long the server may not have answered behind replies that the network had held back, without a
// gap that is long enough to be recorded.
func (h *History) released() (sum time.Duration) {
	for _, e := range h.Events {
		if e.Way == Hold {
			sum += 5 * time.Millisecond
		}
	}
	return sum
}

// stuck is where the users of a closed loop wait, so that nobody asks elsewhere.
func (h *History) stuck() (stuck spans) {
	for _, e := range h.Events {
		if h.Rate == 0 && e.hangs() && e.At >= 0 {
			stuck = union(0, stuck, spans{{e.At, min(e.end(), h.Observed)}})
		}
	}
	return stuck
}

// outages sets the outages: those that begin before the earliest recovery are the fault's, those after the latest are
// not.
func (r *reckoner) outages(t Truth, first, last time.Duration) {
	h, stuck := r.h, r.h.stuck()
	worst := Range{None: true, Unseen: true}
	set := func(name string, of scope, stuck spans) {
		one := r.outage(of, stuck, first, last)
		if old, ok := t[name]; ok {
			one = one.worse(old)
		}
		t[name] = one
		if one.Unseen && (name == OutageReads || name == OutageWrites) {
			one.Lo = 0 // the outage is the longest of those that are proven
		}
		worst = worst.worse(one)
	}
	shards := make([]int, h.Shards)
	for shard := range shards {
		shards[shard] = shard
		if h.Shards > 1 {
			set(OutageShard, scope{h.present(), []int{shard}}, nil)
		}
		if h.Probe > 0 {
			one := r.probeOutage(shard, first, last)
			if old, ok := t[OutageProbe]; ok {
				one = one.worse(old)
			}
			t[OutageProbe] = one
		}
	}
	if probe, ok := t[OutageProbe]; ok {
		worst = worst.worse(probe)
	}
	load := scope{h.present(), shards}
	set(OutageLoad, load, stuck)
	if len(h.present()) == kinds {
		set(OutageReads, scope{[]int{read}, shards}, stuck)
		set(OutageWrites, scope{[]int{write}, shards}, stuck)
		t[OutageGets] = t[OutageReads]
		if h.Ledger == 0 {
			t[OutageSets] = t[OutageWrites]
		}
	}
	t[Outage] = worst
	all, some := r.when(load)
	slowed, _ := h.slowed()
	some = union(0, some, stuck, slowed).until(last)
	t[TotalOutage] = Range{
		Lo: max(0, r.noticed(all.until(first), 1).total().Seconds()-0.001-h.released().Seconds()), None: len(some) == 0,
		Hi: some.total().Seconds() + float64(len(some))*(r.late+2*h.mean(1)+brief).Seconds(),
	}
}

// outage is the longest of a scope. Clients may not get a success between two that are close together, are late in the
// end, and may ask for nothing that could succeed while they wait for what cannot.
func (r *reckoner) outage(of scope, stuck spans, first, last time.Duration) Range {
	all, some := r.when(of)
	pause := r.h.pause(r.h.share(of))
	near := r.late + max(pause, 100*time.Millisecond)
	out := Range{Lo: r.h.seen(all.until(first)).Seconds()}
	longest := union(near, all, stuck).until(last).longest()
	if some = union(near, some).until(last); len(some) > 0 {
		longest = max(longest, min(some.longest(), longest+r.luck(of)))
	}
	slowed, gap := r.h.slowed()
	if len(slowed.until(last)) > 0 {
		if len(union(near, all, slowed)) < len(all)+len(slowed) {
			longest += gap // one waits in the queue until it fails
		}
		longest = max(longest, gap)
	}
	if longest == 0 && (r.h.Rate > 0 || len(r.any().until(last)) == 0) {
		return Range{None: true, Unseen: true}
	}
	// In a closed loop others wait for what the failing ones do, such as dials.
	out.Hi = (longest + r.late).Seconds()
	out.Unseen = r.noticed(all.until(first), r.h.share(of)).longest() == 0
	return out
}

// seen is the shortest that the longest of some stretches can look: the server answers the request
// that it was at when the stretch began, and the first one after it takes less, or does not come as
// the load has ended.
func (h *History) seen(down spans) (longest time.Duration) {
	for _, s := range h.parted(down) {
		length := s.length() - h.costAt(s.from)
		if s.to < h.Observed {
			length += min(h.costAt(s.to), h.costAt(s.from))
		}
		longest = max(longest, length)
	}
	return longest
}

// costAt is how long a command takes at an instant; at the begin or the end of a lower level, during
// it.
func (h *History) costAt(t time.Duration) time.Duration {
	return h.slowest(Event{At: t - 1, For: 2})
}

// parted parts stretches where what the network held back is let through, or a server that was stopped continues: there
// may be replies of before.
func (h *History) parted(down spans) spans {
	for _, e := range h.Events {
		var parts spans
		for _, s := range down {
			answers := e.Way == Stop && h.Rate == 0 && e.At <= s.from // the server is at one of a closed loop's
			if (e.Way == Hold || answers) && s.from < e.end() && e.end() < s.to {
				parts = append(parts, span{s.from, e.end()})
				s.from = e.end()
			}
			parts = append(parts, s)
		}
		down = parts
	}
	return down
}

// luck is for how long nobody need ask for what can succeed: the rarest part of a scope may be the only one that can.
func (r *reckoner) luck(of scope) (d time.Duration) {
	for _, kind := range of.kinds {
		d = max(d, time.Duration(randomly*float64(r.h.mean(r.h.shareOf(kind)/float64(r.h.Shards)))))
	}
	return d
}

// probeOutage is that of the probe of a shard.
func (r *reckoner) probeOutage(shard int, first, last time.Duration) Range {
	down := r.down[shard][write]
	pause := time.Duration(evenly * float64(time.Second) / r.h.Probe)
	longest := union(r.late+max(pause, 100*time.Millisecond), down).until(last).longest()
	slowed, gap := r.h.slowed()
	if len(slowed.until(last)) > 0 {
		longest = max(longest, gap)
	}
	queue := time.Duration(r.h.Users) * r.h.Cost
	if r.h.Shards > 1 && queue.Seconds() > 0.5/r.h.Probe { // now and then all users wait at one shard
		longest = max(longest, pause+queue)
	}
	for _, e := range r.h.Events {
		waits := time.Duration(r.h.Users) * (r.h.slowest(e) - r.h.Cost)
		// a request of the probe waits for as long as until the next one
		often := queue.Seconds() > 0.5/r.h.Probe
		// longer than usual
		if e.Way == Lower && e.At >= 0 && e.At < max(last, r.h.SeenAt+r.h.Hold) && (waits > brief || often) {
			longest = max(longest, pause+r.h.queued(e))
		}
	}
	if longest == 0 {
		return Range{None: true, Unseen: true}
	}
	return Range{Lo: r.h.seen(down.until(first)).Seconds(), Hi: (longest + r.late).Seconds()}
}

func (a Range) worse(b Range) Range {
	return Range{
		Lo:     max(a.Lo, b.Lo),
		Hi:     max(a.Hi, b.Hi),
		None:   a.None && b.None,
		Unseen: a.Unseen && b.Unseen,
	}
}
