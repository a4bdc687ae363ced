package record

// Gaps returns the periods of the complete part in which no pod had a success, ascending. One that reaches the end of the
// complete part is Open.
//
// A pod logs only gaps longer than max(2 x its mean interval between successes, 5 ms), and a gap of the run is where the logs of all pods
// overlap for more than 5 ms. So every period that is longer than the longest of the pods' thresholds is found, with exact ends; a shorter one
// may be missed or reported shorter. With n equal pods that threshold is 2n times the run's mean interval between successes.
// A pod that is lost or has finished is ignored from its last success on; if that holds for all pods, the last gap ends with the record.
func (s *Series) Gaps() []Gap {
	return s.intersect(&s.loadGaps, func(p *podRecord) *stream { return &p.load })
}

// ProbeGaps is like Gaps, for the probes. If the probe's last success is not followed by another, the gap begins somewhere in the interval of
// that success and is assumed to begin at the interval's end. nil if there is no probe, see HasProbe.
func (s *Series) ProbeGaps() []Gap {
	if !s.HasProbe() {
		return nil
	}
	return s.intersect(&s.probeGaps, func(p *podRecord) *stream { return &p.probe })
}

// HasProbe reports whether a probe ran in parallel with the load.
func (s *Series) HasProbe() bool {
	for i := range s.Len() {
		if c := &s.At(i).Probe.Counts; c.Due > 0 || c.Sent > 0 || c.OK > 0 {
			return true
		}
	}
	return false
}

func (s *Series) intersect(m *merging, of func(*podRecord) *stream) []Gap {
	end := int64(s.End())
	return cut(m.common(s.silences(of, end)), end)
}
