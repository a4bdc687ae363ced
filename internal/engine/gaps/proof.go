package gaps

// proof collects when a request was unanswered, or failed, since the last success: only that proves
// an outage.
type proof struct {
	from, to       int64 // of the current period; 0, 0 = none
	bestFrom, best int64 // the longest earlier one
	waiting        bool  // a request has been in flight since waitFrom
	waitFrom       int64
	failedTo       int64 // the end of what was proven before waitFrom; 0 = nothing
	// for how long the client did not run within the current period, and since its end
	skipped, away int64
	skippedBefore int64 // skipped when a request began to wait
	failure       int64 // the latest failed request or refused connection; 0 = none
}

// failed adds that a request failed that was in flight from one instant to the other. Whether
// another is in flight will be noted next.
func (p *proof) failed(from, to, bridge int64) {
	p.seen(from, to, bridge)
	p.failure = max(p.failure, to)
	p.waiting = false
}

// seen adds that the period from one instant to the other is proven; a pause up to bridge before it
// is, too.
func (p *proof) seen(from, to, bridge int64) {
	if p.to > 0 && !p.waiting && from > p.to+bridge {
		if length := p.to - p.from - p.skipped; length > p.best {
			p.bestFrom, p.best = p.from, length
		}
		p.from, p.to, p.skipped, p.away = from, to, 0, 0
		return
	}
	p.skipped, p.away = p.skipped+p.away, 0
	if p.to == 0 {
		p.from = from
	}
	p.from, p.to = min(p.from, from), max(p.to, to)
}

// wait adds that a request is in flight at an instant. It stays in flight until lost or idle is
// called.
func (p *proof) wait(at, bridge int64) {
	if p.waiting {
		return
	}
	p.failedTo, p.skippedBefore = 0, p.skipped
	if p.to > 0 && at <= p.to+bridge {
		p.failedTo = p.to
	}
	p.seen(at, at, bridge)
	p.waiting, p.waitFrom = true, at
}

// idle notes that no request is in flight any more: they failed.
func (p *proof) idle() {
	p.waiting = false
}

// lost notes that a request in flight lost its connection, after the instant until.
func (p *proof) lost(until int64) {
	if p.waiting {
		p.to = max(p.to, until)
		p.waiting = false
	}
}

// skip notes that the client did not run from one instant to the other, so that nothing is proven
// there.
func (p *proof) skip(from, to int64) {
	p.lost(from)
	if p.to > 0 {
		p.away += max(0, to-max(from, p.to))
	}
}

// longest returns the longest period, later by what it skips; end is its end if a request is still
// in flight. Without any it returns 0, 0. That a request waited does not prove a pause before it
// that was longer: it has only been answered.
func (p *proof) longest(end int64) (from, to int64) {
	from, to = p.from+p.skipped, p.to
	switch {
	case !p.waiting:
	case p.failedTo > 0 && p.waitFrom-p.failedTo > end-p.waitFrom:
		from, to = p.from+p.skippedBefore, p.failedTo
	default:
		to = end
	}
	if p.best > to-from {
		return p.bestFrom, p.bestFrom + p.best
	}
	return from, to
}
