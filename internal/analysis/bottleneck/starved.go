package bottleneck

import "fmt"

// stalledPod returns the evidence that a load pod did not run for so long that it limited the load.
// It does not exclude that another component was at a limit when it did; nor does it limit users
// who wait for replies for most of their time, by the kernel's stamps.
func (e *evidence) stalledPod() string {
	if e.elsewhereAtLimit() || e.refusedClients() != "" ||
		e.in.Stamped && e.service.Count() == 0 && e.inFlight >= waitingShare {
		return ""
	}
	return e.didNotRun()
}

// didNotRun returns the evidence that a load pod did not run for a part of the time: in stalls, or,
// in a closed loop, as it waited for a CPU.
func (e *evidence) didNotRun() string {
	s := e.stalls
	if s == nil || e.length < shortestEvidence {
		return ""
	}
	if w := s.Waiting; e.service.Count() == 0 && w.Share >= stalledShare && w.Share > s.Share {
		return fmt.Sprintf(
			"load pod %d waited for a CPU for %s, beside %s in which it ran: up to %s of its time", w.Pod,
			duration(w.Waited), duration(w.Ran), percent(w.Share))
	}
	if s.Length.Seconds() < stalledShare*e.length.Seconds() {
		return ""
	}
	return fmt.Sprintf("load pod %d did not run for %s, %s of the time, at most %s at once",
		s.Pod, duration(s.Length), percent(s.Length.Seconds()/e.length.Seconds()), duration(s.Longest))
}

// starvedServer returns the evidence that Redis did not get to its requests. It waited for a CPU
// then, unless it waited for its disk, as a network that is near is rarely so full; INFO does not
// tell.
func (e *evidence) starvedServer() string {
	if e.disk() != "" {
		return ""
	}
	if waited := e.waitedWithoutWork(starvedRatio, starvedLeast); waited != "" {
		return "Redis waited for a CPU: " + waited
	}
	return ""
}
