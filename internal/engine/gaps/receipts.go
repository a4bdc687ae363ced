package gaps

// Receipt is one or several outcomes that were read together.
type Receipt struct {
	Hi     int64  // when they arrived, at the latest
	Lo     int64  // when the first of them arrived, at the earliest
	Surely int64  // when the last of them arrived, at the earliest
	OK     uint64 // the gap logs that have a success; see parts
	// when the last request of the successes was sent; of a closed loop when it was answered
	Since int64
	// since when a request of each of these logs was in flight on its connection; 0 = not known
	Flight int64
	Failed uint64 // the gap logs that have a failure
	Sent   int64  // when the first failed request was sent
	Shard  int
	// Alive is when the server was last heard on the connection of a success before its request was
	// sent, if the client did not send it at once; otherwise 0. early is when the success could have
	// arrived at the earliest, had the client sent it then, and asked is when it was sent: of several
	// such requests, the latest, the earliest and the latest.
	Alive, Early, Asked int64
}

// Receipts are those of one wake-up, in the order in which they were read.
type Receipts []Receipt

// Note adds outcomes. Those read together are one.
func (l *Receipts) Note(a Receipt) {
	if n := len(*l); n > 0 {
		if b := &(*l)[n-1]; b.Hi == a.Hi && b.Shard == a.Shard {
			b.Lo, b.Surely = min(b.Lo, a.Lo), max(b.Surely, a.Surely)
			b.Since = max(b.Since, a.Since) // each part has one that waited for at least as long
			b.Flight = bothFlights(b, &a)
			b.OK |= a.OK
			if b.Failed == 0 || a.Failed != 0 && a.Sent < b.Sent {
				b.Sent = a.Sent
			}
			b.Failed |= a.Failed
			if a.Early > 0 && (b.Early == 0 || a.Early < b.Early) {
				b.Early = a.Early
			}
			b.Alive = max(b.Alive, a.Alive)
			b.Asked = max(b.Asked, a.Asked) // the shortest wait of those that could have been answered early
			return
		}
	}
	*l = append(*l, a)
}

// bothFlights is since when a request of each of the logs of two successes was in flight.
func bothFlights(a, b *Receipt) int64 {
	switch {
	case a.OK == 0, a.OK == b.OK && a.Flight == 0:
		return b.Flight
	case b.OK == 0, a.OK == b.OK && b.Flight == 0:
		return a.Flight
	case a.OK == b.OK:
		return min(a.Flight, b.Flight)
	case a.Flight == 0 || b.Flight == 0:
		return 0
	}
	return max(a.Flight, b.Flight)
}
