package bottleneck

import (
	"fmt"
	"slices"
	"time"
)

// stalledPod returns the evidence that a load pod did not run for so long that it limited the load. It does not exclude that another component was at a limit
// when it did; nor does it limit users who wait for replies for most of their time, by the kernel's stamps.
func (e *evidence) stalledPod() string {
	if e.elsewhereAtLimit() || e.refusedClients() != "" || e.in.Stamped && e.service.Count() == 0 && e.inFlight >= waitingShare {
		return ""
	}
	return e.didNotRun()
}

// didNotRun returns the evidence that a load pod did not run for a part of the time: in stalls, or, in a closed loop, as it waited for a CPU.
func (e *evidence) didNotRun() string {
	s := e.stalls
	if s == nil || e.length < shortestEvidence {
		return ""
	}
	if w := s.Waiting; e.service.Count() == 0 && w.Share >= stalledShare && w.Share > s.Share {
		return fmt.Sprintf("load pod %d waited for a CPU for %s, beside %s in which it ran: up to %s of its time", w.Pod, duration(w.Waited), duration(w.Ran), percent(w.Share))
	}
	if s.Length.Seconds() < stalledShare*e.length.Seconds() {
		return ""
	}
	return fmt.Sprintf("load pod %d did not run for %s, %s of the time, at most %s at once",
		s.Pod, duration(s.Length), percent(s.Length.Seconds()/e.length.Seconds()), duration(s.Longest))
}

// starvedServer returns the evidence that Redis did not get to its requests: they, and PINGs, take many times as long as the network while its main thread
// uses little of a core. It waited for a CPU then, as a network that is near is rarely so full; INFO does not tell.
func (e *evidence) starvedServer() string {
	s, used := e.busiest(usage.mainThread)
	if s == nil || used.mainThread() >= starvedUse || !e.in.Stamped || e.in.Redis != Direct || len(e.pings) == 0 || e.disk() != "" {
		return ""
	}
	ping, p50 := time.Duration(slices.Sorted(slices.Values(e.pings))[len(e.pings)/2]), e.median()-e.in.AddedLatency
	least := max(starvedLeast, time.Duration(starvedRatio*float64(e.idleRoundTrip)))
	if e.idleRoundTrip == 0 || ping < least || p50 < least {
		return ""
	}
	return fmt.Sprintf("Redis waited for a CPU: half of the requests took %s and more from the send, and a PING %s instead of %s before the load, while its main thread was %s",
		duration(p50), duration(ping), duration(e.idleRoundTrip), s.compared(used, usage.mainThread, " busy"))
}
