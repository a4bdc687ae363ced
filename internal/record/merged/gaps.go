package merged

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/silence"
)

// Gaps returns the periods of the complete part in which no pod had a success, ascending. One that
// reaches the end of the complete part is Open.
//
// A pod logs only gaps longer than max(2 x its mean interval between successes, 5 ms), and a gap of
// the run is where the logs of all pods overlap for more than 5 ms. So every period that is longer
// than the longest of the pods' thresholds is found, with exact ends; a shorter one may be missed
// or reported shorter. That threshold is 2 x PodsLikeSlowest times the run's mean interval between
// successes.
// What one pod knows about a gap's begin, end and proof narrows what the others know.
// A pod that is lost or has finished is ignored from its last success on; if that holds for all
// pods, the last gap ends with the record.
func (s *Series) Gaps() []record.Gap {
	return s.intersect(&s.common.load, func(p *podRecord) *silence.Stream { return &p.load },
		int64(s.End()))
}

// PodsLikeSlowest is how many pods as slow as the slowest, by successes of the load, would have the
// run's rate of successes: the number of pods if they are equally fast, at least 1. Pods with fewer
// than two successes do not count.
func (s *Series) PodsLikeSlowest() float64 {
	all, slowest := 0.0, math.Inf(1)
	for i := range s.pods {
		if t := &s.pods[i].load; t.OK > 1 && t.Last > t.First {
			rate := float64(t.OK-1) / float64(t.Last-t.First)
			all, slowest = all+rate, min(slowest, rate)
		}
	}
	return max(1, all/slowest)
}

// ProbeGaps is like Gaps, for the probes; with several shards only of an older record, for any of
// them. If the probe's last success is not followed by another, the gap begins somewhere in the
// interval of that success and is assumed to begin at the interval's end. nil if there is no probe,
// see HasProbe.
func (s *Series) ProbeGaps() []record.Gap {
	if !s.HasProbe() {
		return nil
	}
	return s.intersect(&s.common.probe, s.probing(), s.probedUntil())
}

// probing returns the probe of a pod; nil if it has none: only some of the pods need to probe, see
// plan.Plan.ProbePods.
func (s *Series) probing() func(*podRecord) *silence.Stream {
	some := s.ProbePods() > 0
	return func(p *podRecord) *silence.Stream {
		if some && p.probe.OK == 0 && len(p.probe.Gaps) == 0 {
			return nil
		}
		return &p.probe
	}
}

// ProbeShards is the number of shards that have a probe of their own; 0 for a target with one
// shard.
func (s *Series) ProbeShards() int {
	n := 0
	for i := range s.pods {
		n = max(n, len(s.pods[i].probes))
	}
	return n
}

// ProbeShardGaps is ProbeGaps for the probe of one shard, over the pods that probe it.
func (s *Series) ProbeShardGaps(shard int) []record.Gap {
	m := silence.Merging{}
	if shard < len(s.common.probeShards) {
		m = s.common.probeShards[shard]
	}
	return s.intersect(&m, probeOf(shard), s.probedUntil())
}

// probeOf returns the probe of a shard of a pod; nil if it has none.
func probeOf(shard int) func(*podRecord) *silence.Stream {
	return func(p *podRecord) *silence.Stream {
		if shard >= len(p.probes) {
			return nil
		}
		return &p.probes[shard]
	}
}

// probedUntil is when the probe's record ends: once the pods that probe are lost, the others do not
// tell whether servers serve.
func (s *Series) probedUntil() int64 {
	until := int64(0)
	for i := range s.pods {
		if p := &s.pods[i]; p.probe.OK > 0 {
			until = max(until, p.delivered(s.PodStep))
		}
	}
	if until == 0 { // no success at all
		return int64(s.End())
	}
	return min(until, int64(s.End()))
}

// ProbePods is the number of pods whose probe had a success.
func (s *Series) ProbePods() int {
	n := 0
	for i := range s.pods {
		if s.pods[i].probe.OK > 0 {
			n++
		}
	}
	return n
}

// HasProbe reports whether a probe ran in parallel with the load.
func (s *Series) HasProbe() bool {
	for i := range s.Len() {
		c := &s.At(i).Probe.Counts
		if c.Due > 0 || c.Sent > 0 || c.OK > 0 {
			return true
		}
	}
	return false
}

// intersect returns the gaps of the run until end.
func (s *Series) intersect(
	m *silence.Merging, of func(*podRecord) *silence.Stream, end int64,
) []record.Gap {
	return silence.Cut(m.Common(s.silences(of, end)), end)
}

// Hole is a part of one pod's record that is missing: empty intervals stand for it.
type Hole struct {
	Pod      int
	From, To time.Duration // from the start of the run
}

// String describes the hole in a sentence without its end.
func (h Hole) String() string {
	return fmt.Sprintf(
		"pod %d had to forget its record from %v to %v before it could be pulled: it counts as zero there",
		h.Pod, h.From, h.To)
}

// maxHoles bounds the holes that a series distinguishes: with more, the last one is extended.
const maxHoles = 64

// AddHole records that the intervals [from, to) of a pod, which were added as empty ones, are
// missing.
func (s *Series) AddHole(pod int, from, to int64) {
	hole := Hole{
		Pod:  pod,
		From: time.Duration(from) * s.PodStep,
		To:   time.Duration(to) * s.PodStep,
	}
	if n := len(s.holes); n == maxHoles {
		last := &s.holes[n-1]
		last.From, last.To = min(last.From, hole.From), max(last.To, hole.To)
		return
	}
	s.holes = append(s.holes, hole)
}

// Holes returns what is missing, in the order in which it was noticed.
func (s *Series) Holes() []Hole {
	return slices.Clone(s.holes)
}

func appendHoles(b []byte, holes []Hole) []byte {
	b = codec.AppendUint(b, uint64(len(holes)))
	for _, h := range holes {
		b = codec.AppendUint(b, uint64(h.Pod))
		b = codec.AppendInt(b, int64(h.From))
		b = codec.AppendInt(b, int64(h.To))
	}
	return b
}

func readHoles(r *codec.Reader, pods int) (holes []Hole) {
	for range r.Count(3) {
		h := Hole{
			Pod:  r.Small(),
			From: time.Duration(r.Int()),
			To:   time.Duration(r.Int()),
		}
		if r.Err() == nil && (h.Pod >= pods || h.From < 0 || h.To < h.From || len(holes) == maxHoles) {
			r.Fail("hole %d of pod %d from %v to %v", len(holes), h.Pod, h.From, h.To)
		}
		holes = append(holes, h)
	}
	return holes
}
