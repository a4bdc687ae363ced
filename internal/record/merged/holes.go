package merged

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record/codec"
)

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
