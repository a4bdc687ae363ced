package engine

// receipt is one or several outcomes that were read together.
type receipt struct {
	hi     int64  // when they arrived, at the latest
	lo     int64  // when the first of them arrived, at the earliest
	surely int64  // when the last of them arrived, at the earliest
	ok     uint64 // the gap logs that have a success; see parts
	since  int64  // when the last request of the successes was sent; of a closed loop when it was answered
	flight int64  // since when a request of each of these logs was in flight on its connection; 0 = not known
	failed uint64 // the gap logs that have a failure
	sent   int64  // when the first failed request was sent
	shard  int
	// alive is when the server was last heard on the connection of a success before its request was sent, if the client did not send it at once; otherwise 0.
	// early is when the success could have arrived at the earliest, had the client sent it then, and asked is when it was sent: of several such requests, the
	// latest, the earliest and the latest.
	alive, early, asked int64
}

// receipts are those of one wake-up, in the order in which they were read.
type receipts []receipt

// note adds outcomes. Those read together are one.
func (l *receipts) note(a receipt) {
	if n := len(*l); n > 0 {
		if b := &(*l)[n-1]; b.hi == a.hi && b.shard == a.shard {
			b.lo, b.surely = min(b.lo, a.lo), max(b.surely, a.surely)
			b.since = max(b.since, a.since) // each part has one that waited for at least as long
			b.flight = bothFlights(b, &a)
			b.ok |= a.ok
			if b.failed == 0 || a.failed != 0 && a.sent < b.sent {
				b.sent = a.sent
			}
			b.failed |= a.failed
			if a.early > 0 && (b.early == 0 || a.early < b.early) {
				b.early = a.early
			}
			b.alive = max(b.alive, a.alive)
			b.asked = max(b.asked, a.asked) // the shortest wait of those that could have been answered early
			return
		}
	}
	*l = append(*l, a)
}

// bothFlights is since when a request of each of the logs of two successes was in flight.
func bothFlights(a, b *receipt) int64 {
	switch {
	case a.ok == 0, a.ok == b.ok && a.flight == 0:
		return b.flight
	case b.ok == 0, a.ok == b.ok && b.flight == 0:
		return a.flight
	case a.ok == b.ok:
		return min(a.flight, b.flight)
	case a.flight == 0 || b.flight == 0:
		return 0
	}
	return max(a.flight, b.flight)
}
