package collect

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect/clocks"
	"github.com/redquake/redquake/internal/record/merged"
)

// The clock of the run counts from the start instant, at the median of the rates of the pods'
// clocks. Every pod records by its own clock, which was aligned at the start and drifts from then
// on (20 ppm are 430 ms in 6 h): how far each is ahead of the run's is measured all along, and
// taken out of the instants that the record merges.

// driftNoted is the time that clocks must have run apart to be noted.
const driftNoted = 5 * time.Millisecond

// lead is how far a pod's time since the start is ahead of the local time, in nanoseconds, with its
// maximum error.
type lead struct{ by, uncertainty int64 }

// runTime converts a local instant to the time since the start on the clock of the run. The caller
// holds mu.
func (s *Session) runTime(local int64) int64 {
	if !s.clock.aligned {
		return local - s.start.local
	}
	return local + s.clock.lead
}

// alignDue reports, after a reading of a pod's clock, whether align is due: once a pod has accepted
// the start instant, and then every StatusEvery.
func (s *Session) alignDue(p *pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start.set && p.last.StartAt != 0 &&
		(!s.clock.aligned || s.now()-s.clock.alignedAt >= int64(s.cfg.StatusEvery))
}

// align measures the clocks of all pods, for the intervals that are merged from now on.
func (s *Session) align() {
	s.record.Lock()
	defer s.record.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alignLocked()
}

// alignLocked is align for a caller that holds record and mu.
func (s *Session) alignLocked() {
	now := s.now()
	s.clock.alignedAt = now
	leads := make([]lead, 0, len(s.pods))
	of := make(map[*pod]lead, len(s.pods))
	for _, p := range s.pods {
		offset, uncertainty, ok := p.process.clock.Estimate(now)
		if ok && p.process.clock.Settled() && p.last.StartAt != 0 && !p.gone && p.problem == "" {
			of[p] = lead{offset - p.last.StartAt, uncertainty}
			leads = append(leads, of[p])
		}
	}
	if len(leads) == 0 {
		return
	}
	middle := medianLead(leads)
	if !s.clock.aligned {
		s.clock.aligned, s.clock.lead = true, middle.by
	}
	s.clock.lead = moved(s.clock.lead, middle.by, middle.uncertainty)
	for p, l := range of {
		ahead := int64(s.record.series.Ahead(p.index))
		measured := l.by - s.clock.lead
		ahead = moved(ahead, measured, l.uncertainty)
		// What is merged next was recorded a while ago: until now the clock may have drifted.
		lag := max(0, s.runTime(now)-s.record.series.Next(p.index)*int64(s.cfg.Step))
		uncertainty := l.uncertainty + max(measured-ahead, ahead-measured)
		if !p.progress.closed {
			uncertainty += int64(clocks.Drift * float64(lag))
		}
		s.record.merged(func(series *merged.Series) {
			series.Align(p.index, time.Duration(ahead),
				time.Duration(uncertainty))
		})
	}
	for _, sentence := range s.clock.steps {
		s.record.note(sentence)
	}
	s.clock.steps = nil
	if s.record.series.ClockSpread > driftNoted {
		s.record.merged(func(series *merged.Series) {
			series.Note("Clocks drifted: ",
				fmt.Sprintf(
					"those of the load pods ran apart by up to %v; gaps and the instants of errors are corrected by it.",
					series.ClockSpread.Round(time.Millisecond)))
		})
	}
}

// medianLead returns the median, of an even number the mean of the middle two.
func medianLead(leads []lead) lead {
	slices.SortFunc(leads, func(a, b lead) int { return int(max(-1, min(1, a.by-b.by))) })
	a, b := leads[(len(leads)-1)/2], leads[len(leads)/2]
	return lead{a.by + (b.by-a.by)/2, max(a.uncertainty, b.uncertainty)}
}

// moved returns what is closest to applied and at most uncertainty from measured: a correction
// follows drift, but not the noise of round trips.
func moved(applied, measured, uncertainty int64) int64 {
	return min(max(applied, measured-uncertainty), measured+uncertainty)
}

// podStepped notes that a pod's clock stood still, or that the wall clock of its node was set. The
// caller holds mu.
func (s *Session) podStepped(p *pod, moved int64, status agent.Status) {
	wallAhead := status.Wall - status.Now
	set := wallAhead - p.process.wallAhead
	if p.process.wallAhead == 0 || status.Wall == 0 {
		set = 0
	}
	p.process.wallAhead = wallAhead
	for what, by := range map[string]time.Duration{
		"clock":      time.Duration(moved),
		"wall clock": time.Duration(set),
	} {
		if by.Abs() > stepNoted {
			s.cfg.Logger.Warn("the "+what+" of a load pod was set or stood still", "pod", p.index, "name",
				p.name, "moved", by)
			s.clock.steps = append(s.clock.steps,
				fmt.Sprintf("The %s of load pod %d moved by %v.", what, p.index, by.Round(time.Millisecond)))
		}
	}
}
