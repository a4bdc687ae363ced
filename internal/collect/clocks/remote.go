package clocks

const (
	// samples is how many round trips an estimate uses.
	samples = 32
	// settled is how many round trips are required before the start.
	settled = 5
	// Drift bounds how fast two clocks of one cluster drift apart, in ns per ns: quartz and NTP's
	// slewing in the ordinary case.
	Drift = 50e-6
)

// roundTrip is one reading of a pod's clock. Local instants are nanoseconds since the session was
// opened.
type roundTrip struct {
	at     int64 // local instant of the midpoint
	offset int64 // pod's clock - local clock at the midpoint
	rtt    int64
}

// Remote estimates a pod's clock from round trips. The error of a reading is at most rtt/2, so the
// shortest of the recent round trips is the most precise. The error grows with the age of the
// reading by Drift.
type Remote struct {
	trips [samples]roundTrip
	count int // of all ever observed
}

// Observe adds a reading: the pod's clock was at remote between the local instants sent and
// received. A reading that no drift explains means that one of the clocks stood still, as that of a
// suspended machine does: it replaces the others, and Observe returns by how much the pod's clock
// moved.
func (c *Remote) Observe(sent, received, remote int64) (moved int64) {
	middle := sent + (received-sent)/2
	trip := roundTrip{
		at:     middle,
		offset: remote - middle,
		rtt:    received - sent,
	}
	offset, uncertainty, ok := c.Estimate(middle)
	if ok && max(trip.offset-offset, offset-trip.offset) > uncertainty+trip.rtt/2+1 {
		moved = trip.offset - offset
		*c = Remote{}
	}
	c.trips[c.count%samples] = trip
	c.count++
	return moved
}

// Settled reports whether there were enough round trips for the start.
func (c *Remote) Settled() bool {
	return c.count >= settled
}

// Estimate returns pod's clock - local clock, and its maximum error at the local instant now. ok is
// false without a reading.
func (c *Remote) Estimate(now int64) (offset, uncertainty int64, ok bool) {
	for _, trip := range c.trips[:min(c.count, samples)] {
		off := trip.rtt/2 + int64(float64(max(0, now-trip.at))*Drift)
		if !ok || off < uncertainty {
			offset, uncertainty, ok = trip.offset, off, true
		}
	}
	return offset, uncertainty, ok
}
