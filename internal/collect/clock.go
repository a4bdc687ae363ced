package collect

const (
	// clockSamples is how many round trips an estimate remembers.
	clockSamples = 32
	// clockSettled is how many round trips make an estimate good enough to start by.
	clockSettled = 5
	// clockDrift bounds how fast two clocks of one cluster drift apart, in ns per ns: quartz and NTP's slewing in the ordinary case.
	clockDrift = 50e-6
)

// roundTrip is one reading of a pod's clock. Local instants are nanoseconds since the session was opened.
type roundTrip struct {
	at     int64 // local instant of the midpoint
	offset int64 // pod's clock - local clock at the midpoint
	rtt    int64
}

// clock estimates a pod's clock from round trips: a reading lies somewhere within its round trip, so it is right to rtt/2, and the
// shortest of the recent ones says most. A reading's worth fades with its age by clockDrift.
type clock struct {
	trips [clockSamples]roundTrip
	count int // of all ever observed
}

// observe takes a reading: the pod's clock said remote between the local instants sent and received.
func (c *clock) observe(sent, received, remote int64) {
	middle := sent + (received-sent)/2
	c.trips[c.count%clockSamples] = roundTrip{at: middle, offset: remote - middle, rtt: received - sent}
	c.count++
}

// settled says whether there were enough round trips to start by.
func (c *clock) settled() bool { return c.count >= clockSettled }

// estimate returns pod's clock - local clock, and how far it may be off at the local instant now. Without a reading ok is false.
func (c *clock) estimate(now int64) (offset, uncertainty int64, ok bool) {
	for _, trip := range c.trips[:min(c.count, clockSamples)] {
		off := trip.rtt/2 + int64(float64(max(0, now-trip.at))*clockDrift)
		if !ok || off < uncertainty {
			offset, uncertainty, ok = trip.offset, off, true
		}
	}
	return offset, uncertainty, ok
}
