package merged

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/silence"
)

// coarseNote is the beginning of the note about what was coarsened.
const coarseNote = "Kept more coarsely than measured: "

// Coarsen makes the record smaller and keeps it exact on a coarser grid. It first merges the
// histograms onto a grid of 1 s, and then, whichever takes more memory, the histograms (2 s, 10 s,
// 20 s, ...) or the counts (from 100 ms: 200 ms, 1 s, 2 s, 10 s, ...). Sums, gaps and quantiles of
// periods that begin and end on the new grid do not change, and intervals can still be added. Full
// resolution is kept of the last three minutes and of what Keep names, unless that is the larger
// part: see Fine. It adds a note; reason completes "so that ...".
// It returns false if the record is as coarse as it can be.
func (s *Series) Coarsen(reason string) bool {
	return s.coarsen(s.memory(), 4<<20, reason)
}

// Memory is the approximate size of the record in bytes. It iterates over all intervals: do not
// call it for every Add.
func (s *Series) Memory() int {
	m := s.memory()
	return m.histograms + m.counts + m.fine + m.gaps + m.others
}

// sizes are those of the parts of a record, in bytes.
type sizes struct{ histograms, counts, fine, gaps, others int }

func (s *Series) memory() sizes {
	var m sizes
	m.histograms, m.counts = s.memoryOf(s.intervals)
	if s.fine != nil {
		for _, b := range s.fine.blocks {
			histograms, counts := s.memoryOf(b.intervals)
			m.fine += histograms + counts
		}
	}
	for _, list := range s.gapLists() {
		m.gaps += cap(*list) * int(unsafe.Sizeof(record.Gap{}))
	}
	m.others = s.observed.size() + len(s.pods)*int(unsafe.Sizeof(podRecord{}))
	return m
}

func (s *Series) memoryOf(intervals []record.Interval) (histograms, counts int) {
	counts = (int(unsafe.Sizeof(record.Interval{})) + int(unsafe.Sizeof(record.Op{}))*len(s.Ops) +
		8*len(s.Tallies)) * cap(intervals)
	for i := range intervals {
		iv := &intervals[i]
		counts += int(unsafe.Sizeof(record.ShardCounts{}))*cap(iv.Shards) + 8*cap(iv.Lost) +
			8*cap(iv.Stalled)
		for k := range len(iv.Ops) + 1 {
			for _, h := range iv.Operation(k).Histograms() {
				histograms += int(unsafe.Sizeof(histogram.Bucket{})) * cap(*h)
			}
		}
	}
	return histograms, counts
}

// coarsen coarsens the largest part by one step. Gaps are dropped only if they take more than
// least. It returns false if it is at its coarsest.
func (s *Series) coarsen(m sizes, least int, reason string) bool {
	all := m.histograms + m.counts + m.fine + m.gaps
	switch {
	case m.gaps > max(least, all/3):
		s.dropShortGaps(reason)
		return true
	case m.fine > all/2 && s.thinFine():
	case len(s.intervals) > 1:
		s.coarsenLarger(m.histograms, m.counts)
	case s.thinFine():
	case m.gaps > least:
		s.dropShortGaps(reason)
		return true
	default:
		return false
	}
	s.noteCoarse(reason)
	return true
}

// CoarsenAs coarsens the record at least as much as another one of the same run.
func (s *Series) CoarsenAs(o *Series) {
	if o.LatencyStep > s.LatencyStep {
		s.coarsenHistograms(o.LatencyStep)
	}
	if o.Step > s.Step {
		s.coarsenCounts(o.Step)
	}
	if s.fine != nil && o.fine != nil {
		if s.fine.tail = min(s.fine.tail, o.fine.tail); o.fine.group > s.fine.group {
			s.regroup(o.fine.group)
		}
	}
	s.windows = slices.DeleteFunc(s.windows, func(w window) bool {
		return !slices.ContainsFunc(o.windows, func(kept window) bool { return kept.id == w.id })
	})
	s.seal()
	for _, note := range o.Notes {
		if strings.HasPrefix(note, coarseNote) {
			s.Note(coarseNote, strings.TrimPrefix(note, coarseNote))
		}
	}
}

// coarsenLarger coarsens the larger part by one step. Histograms finer than 1 s are coarsened
// first: few figures need them.
// They stay at 20 s or finer until the counts are at 1 s, because latency after a fault is reported
// per ten seconds.
func (s *Series) coarsenLarger(histograms, rest int) {
	step := nextStep(s.LatencyStep)
	if s.LatencyStep < fineLatencyStep {
		for step < fineLatencyStep {
			step = nextStep(step)
		}
		s.coarsenHistograms(step)
		return
	}
	// otherwise all histograms are already merged into one
	apart := s.LatencyStep < time.Duration(len(s.intervals))*s.Step
	if histograms > rest && apart && (step <= 20*time.Second || s.Step >= time.Second) {
		s.coarsenHistograms(step)
		return
	}
	s.coarsenCounts(nextStep(s.Step))
}

// nextStep is the next coarser grid: the smallest multiple that divides 1 s, if there is one; from
// 1 s on alternately two and five times the step: 1 s, 2 s, 10 s, 20 s, ...
func nextStep(step time.Duration) time.Duration {
	for m := 2 * step; m <= time.Second; m += step {
		if time.Second%m == 0 {
			return m
		}
	}
	for ten := 2 * time.Second; ten <= step; ten *= 10 {
		if step == ten {
			return 5 * step
		}
	}
	return 2 * step
}

func (s *Series) coarsenCounts(step time.Duration) {
	s.split()
	if s.LatencyStep%step != 0 {
		s.coarsenHistograms(leastCommonMultiple(s.LatencyStep, step))
	}
	group := int(step / s.Step)
	coarse := make([]record.Interval, 0, len(s.intervals)/group+1)
	for first := 0; first < len(s.intervals); first += group {
		parts := s.intervals[first:min(first+group, len(s.intervals))]
		sum := s.newInterval(int64(len(coarse)))
		for k := range sum.Ops {
			sum.Ops[k] = parts[0].Ops[k] // its histograms are those of the whole group
		}
		sum.Probe = parts[0].Probe
		for i := range parts {
			sum.MergeInstants(&parts[i])
			sum.MergeTallies(&parts[i])
			if i == 0 {
				continue
			}
			for k := range sum.Ops {
				sum.Ops[k].Counts.Add(&parts[i].Ops[k].Counts)
			}
			sum.Probe.Counts.Add(&parts[i].Probe.Counts)
		}
		sum.Pods, sum.Connections = parts[0].Pods, parts[len(parts)-1].Connections
		coarse = append(coarse, sum)
	}
	s.intervals, s.Step = coarse, step
	s.observed.servers.Thin(step)
}

func (s *Series) coarsenHistograms(step time.Duration) {
	if step > time.Duration(s.fineGroup())*s.PodStep {
		s.split()
	}
	s.mergeHistograms(step)
}

// mergeHistograms is coarsenHistograms for the intervals alone.
func (s *Series) mergeHistograms(step time.Duration) {
	from, to := int(s.LatencyStep/s.Step), int(step/s.Step)
	for first := 0; first < len(s.intervals); first += to {
		sums := s.intervals[first].Histograms()
		for k, sum := range sums {
			whole := slices.Clone(*sum) // encoding coarsens a copy that shares cells with the original
			for i := first + from; i < min(first+to, len(s.intervals)); i += from {
				part := s.intervals[i].Histograms()[k]
				whole = histogram.Merge(whole, *part)
				*part = nil
			}
			*sum = whole
		}
	}
	s.LatencyStep = step
}

func leastCommonMultiple(a, b time.Duration) time.Duration {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// gapNote is the beginning of the note about omitted gaps.
const gapNote = "Short gaps left out: "

// dropShortGaps drops the shorter half of the gaps: the last resort if a run has so many that they
// alone exceed the limit.
func (s *Series) dropShortGaps(reason string) {
	s.foldGaps()
	var lengths []int64
	lists := s.gapLists()
	for _, list := range lists {
		for _, g := range *list {
			lengths = append(lengths, g.To-g.From)
		}
	}
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	limit := lengths[len(lengths)/2]
	for _, list := range lists {
		*list = slices.DeleteFunc(slices.Clone(*list), func(g record.Gap) bool {
			return g.To-g.From <= limit
		})
	}
	s.Note(gapNote, fmt.Sprintf("those of up to %v, so that %s.", time.Duration(limit), reason))
}

// gapLists returns all lists of gaps: those of the run and, of every pod, those that can still
// become some.
func (s *Series) gapLists() []*[]record.Gap {
	var lists []*[]record.Gap
	for _, m := range s.mergings() {
		lists = append(lists, &m.Gaps)
	}
	for _, t := range s.streams() {
		lists = append(lists, &t.Gaps)
	}
	return lists
}

// streams returns all streams, each of which has a gap log.
func (s *Series) streams() []*silence.Stream {
	list := make([]*silence.Stream, 0, 2*len(s.pods))
	for i := range s.pods {
		p := &s.pods[i]
		list = append(list, &p.load, &p.probe)
		for k := range p.probes {
			list = append(list, &p.probes[k])
		}
		for k := range p.shards {
			list = append(list, &p.shards[k].Stream)
		}
		for k := range p.parts {
			list = append(list, &p.parts[k].Stream)
		}
	}
	return list
}

func (s *Series) noteCoarse(reason string) {
	s.Note(coarseNote,
		fmt.Sprintf(
			"counts per %v and latency per %v instead of per %v, except around faults, so that %s.",
			s.Step, s.LatencyStep, s.PodStep, reason))
}

// Note adds a note, and replaces the one that begins in the same way.
func (s *Series) Note(begin, rest string) {
	s.Notes = slices.DeleteFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, begin) })
	s.Notes = append(s.Notes, begin+rest)
}
