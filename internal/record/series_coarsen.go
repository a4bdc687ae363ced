package record

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// coarseNote is the beginning of the note about what was coarsened.
const coarseNote = "Kept more coarsely than measured: "

// Coarsen makes the record smaller and keeps it exact on a coarser grid. It first merges the histograms onto a grid of 1 s, and then, whichever
// takes more memory, the histograms (2 s, 10 s, 20 s, ...) or the counts (from 100 ms: 200 ms, 1 s, 2 s, 10 s, ...). Sums, gaps and quantiles of
// periods that begin and end on the new grid do not change, and intervals can still be added. It adds a note; reason completes "so that ...".
func (s *Series) Coarsen(reason string) {
	histograms, rest := s.memory()
	s.coarsenLarger(histograms, rest)
	s.noteCoarse(reason)
}

// Memory is the approximate size of the intervals in bytes. It iterates over all of them: do not call it for every Add.
func (s *Series) Memory() int {
	histograms, rest := s.memory()
	return histograms + rest
}

func (s *Series) memory() (histograms, rest int) {
	for i := range s.intervals {
		iv := &s.intervals[i]
		rest += 200 + 350*(len(iv.Ops)+1) + 8*len(iv.Tallies) + 16*cap(iv.Shards)
		for _, h := range iv.allHistograms() {
			histograms += 8 * cap(*h)
		}
	}
	return histograms, rest
}

// coarsenLarger coarsens the larger part by one step. Histograms finer than 1 s are coarsened first: few figures need them.
// They stay at 20 s or finer until the counts are at 1 s, because latency after a fault is reported per ten seconds.
func (s *Series) coarsenLarger(histograms, rest int) {
	step := nextStep(s.LatencyStep)
	if s.LatencyStep < time.Second {
		for step < time.Second {
			step = nextStep(step)
		}
		s.coarsenHistograms(step)
		return
	}
	apart := s.LatencyStep < time.Duration(len(s.intervals))*s.Step // otherwise all histograms are already merged into one
	if histograms > rest && apart && (step <= 20*time.Second || s.Step >= time.Second) {
		s.coarsenHistograms(step)
		return
	}
	s.coarsenCounts(nextStep(s.Step))
}

// nextStep is the next coarser grid: the smallest multiple that divides 1 s, if there is one; from 1 s on alternately two and five times
// the step: 1 s, 2 s, 10 s, 20 s, ...
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
	if s.LatencyStep%step != 0 {
		s.coarsenHistograms(leastCommonMultiple(s.LatencyStep, step))
	}
	group, share := int(step/s.Step), s.share()
	coarse := make([]Interval, 0, len(s.intervals)/group+1)
	for first := 0; first < len(s.intervals); first += group {
		parts := s.intervals[first:min(first+group, len(s.intervals))]
		sum := s.newInterval(int64(len(coarse)))
		for k := range sum.Ops {
			sum.Ops[k] = parts[0].Ops[k] // its histograms are those of the whole group
		}
		sum.Probe = parts[0].Probe
		for i := range parts {
			sum.mergeInstants(&parts[i])
			sum.mergeTallies(&parts[i])
			if i == 0 {
				continue
			}
			for k := range sum.Ops {
				sum.Ops[k].Counts.add(&parts[i].Ops[k].Counts)
			}
			sum.Probe.Counts.add(&parts[i].Probe.Counts)
		}
		last := &parts[len(parts)-1]
		sum.Pods, sum.Connections = parts[0].Pods, last.Connections
		for p := range s.pods {
			// A pod that has not delivered the last part keeps the connections of its own last interval.
			if next := s.pods[p].next; next > int64(first)*share && next <= last.Index*share {
				sum.Connections += s.pods[p].connections
			}
		}
		coarse = append(coarse, sum)
	}
	s.intervals, s.Step = coarse, step
	s.thinServers(step)
}

func (s *Series) coarsenHistograms(step time.Duration) {
	from, to := int(s.LatencyStep/s.Step), int(step/s.Step)
	for first := 0; first < len(s.intervals); first += to {
		sums := s.intervals[first].allHistograms()
		for k, sum := range sums {
			whole := slices.Clone(*sum) // encoding coarsens a copy that shares cells with the original
			for i := first + from; i < min(first+to, len(s.intervals)); i += from {
				part := s.intervals[i].allHistograms()[k]
				whole = Merge(whole, *part)
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

// dropShortGaps drops the shorter half of the gaps: the last resort if a run has so many that they alone exceed the limit.
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
		*list = slices.DeleteFunc(slices.Clone(*list), func(g Gap) bool { return g.To-g.From <= limit })
	}
	s.Note(gapNote, fmt.Sprintf("those of up to %v, so that %s.", time.Duration(limit), reason))
}

// gapLists returns all lists of gaps: those of the run and, of every pod, those that can still become some.
func (s *Series) gapLists() []*[]Gap {
	var lists []*[]Gap
	for _, m := range s.mergings() {
		lists = append(lists, &m.gaps)
	}
	for _, t := range s.streams() {
		lists = append(lists, &t.gaps)
	}
	return lists
}

// streams returns all streams, each of which has a gap log.
func (s *Series) streams() []*stream {
	list := make([]*stream, 0, 2*len(s.pods))
	for i := range s.pods {
		p := &s.pods[i]
		list = append(list, &p.load, &p.probe)
		for k := range p.shards {
			list = append(list, &p.shards[k].stream)
		}
	}
	return list
}

func (s *Series) noteCoarse(reason string) {
	s.Note(coarseNote, fmt.Sprintf("counts per %v and latency per %v instead of per %v, so that %s.",
		s.Step, s.LatencyStep, s.PodStep, reason))
}

// Note adds a note, and replaces the one that begins in the same way.
func (s *Series) Note(begin, rest string) {
	s.Notes = slices.DeleteFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, begin) })
	s.Notes = append(s.Notes, begin+rest)
}
