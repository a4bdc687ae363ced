package collect

const (
	// clockSamples is how many round trips an estimate uses.
	clockSamples = 32
	// clockSettled is how many round trips are required before the start.
	clockSettled = 5
	// clockDrift bounds how fast two clocks of one cluster drift apart, in ns per ns: quartz and NTP's
	// slewing in the ordinary case.
	clockDrift = 50e-6
)

// roundTrip is one reading of a pod's clock. Local instants are nanoseconds since the session was
// opened.
type roundTrip struct {
	at     int64 // local instant of the midpoint
	offset int64 // pod's clock - local clock at the midpoint
	rtt    int64
}

// clock estimates a pod's clock from round trips. The error of a reading is at most rtt/2, so the
// shortest of the recent round trips is the most precise. The error grows with the age of the
// reading by clockDrift.
type clock struct {
	trips [clockSamples]roundTrip
	count int // of all ever observed
}

// observe adds a reading: the pod's clock was at remote between the local instants sent and
// received. A reading that no drift explains means that one of the clocks stood still, as that of a
// suspended machine does: it replaces the others, and observe returns by how much the pod's clock
// moved.
func (c *clock) observe(sent, received, remote int64) (moved int64) {
	middle := sent + (received-sent)/2
	trip := roundTrip{at: middle, offset: remote - middle, rtt: received - sent}
	if offset, uncertainty, ok := c.estimate(middle); ok &&
		max(trip.offset-offset, offset-trip.offset) > uncertainty+trip.rtt/2+1 {
		moved = trip.offset - offset
		*c = clock{}
	}
	c.trips[c.count%clockSamples] = trip
	c.count++
	return moved
}

// settled reports whether there were enough round trips for the start.
func (c *clock) settled() bool {
	return c.count >= clockSettled
}

// estimate returns pod's clock - local clock, and its maximum error at the local instant now. ok is
// false without a reading.
func (c *clock) estimate(now int64) (offset, uncertainty int64, ok bool) {
	for _, trip := range c.trips[:min(c.count, clockSamples)] {
		off := trip.rtt/2 + int64(float64(max(0, now-trip.at))*clockDrift)
		if !ok || off < uncertainty {
			offset, uncertainty, ok = trip.offset, off, true
		}
	}
	return offset, uncertainty, ok
}
