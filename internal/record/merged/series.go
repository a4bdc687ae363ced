// Package merged merges the records of a run's pods into one: counts and histograms over time, the
// gaps that all pods have in common, the readings of servers and load generators. It bounds its
// size, by coarsening what is far from faults, and encodes it.
package merged

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/readings"
	"github.com/redquake/redquake/internal/record/silence"
)

// Errors of Series.Add.
var (
	// harmless: the caller can continue
	ErrDuplicate = errors.New("interval already merged")
	// the caller must deliver Next first
	ErrHole  = errors.New("interval ahead of the one expected")
	ErrEnded = errors.New("record of this pod has ended already") // Lose or Finish was called
	// wrong number of operations, or of the pod
	ErrShape = errors.New("interval does not fit the series")
)

// Series is the merged record of a run: one Interval per step from the run's start, from any number
// of pods.
// It does not depend on the order in which the pods delivered their intervals. It is not safe for
// concurrent use.
type Series struct {
	Run     string        // identifies the run
	Start   time.Time     // instant T, UTC
	PodStep time.Duration // the step of the intervals that pods deliver
	Step    time.Duration // the step of At: PodStep, or a multiple of it after Coarsen
	// the step of the histograms, a multiple of Step: each is in the first interval of its group,
	// those of the other intervals are empty
	LatencyStep time.Duration
	Ops         []string // names of the operations, in the order of Interval.Ops
	// names of the workload's counters, in the order of Interval.Tallies; see SetTallies
	Tallies []string
	Pods    int      // how many pods share the load
	Notes   []string // human-readable: what was coarsened and why

	// Result is the result of the run, as package result writes it; nil = none was kept beside the
	// record. This package keeps it, and reads nothing of it.
	Result []byte

	// ClockUncertainty is the greatest error of an instant of any pod against the clock of the run: of
	// its alignment and of its drift. A period between instants of two pods, or between one of a pod
	// and t0, is uncertain by at most twice as much.
	ClockUncertainty time.Duration
	// ClockSpread is how far the clocks of the pods ran apart. It is taken out of gaps and instants,
	// but not out of counts: rates over a second are blurred by as much.
	ClockSpread time.Duration

	readOnly  []bool // by operation, see SetReadOnly
	intervals []record.Interval
	requests  uint64 // of all intervals
	pods      []podRecord
	holes     []Hole

	resolution
	observed observations
	common   common
}

// resolution is what there is at full resolution beside the intervals.
type resolution struct {
	// what a coarsened record keeps so; nil if it was not coarsened: its intervals have everything
	fine    *fine
	windows []window // the parts to be kept so
	view    *view    // of a series that Fine has returned
}

// common are the gaps that all pods have in common.
type common struct {
	load, probe silence.Merging
	probeShards []silence.Merging // by the shard's number
	shards      []silence.Merging // by the shard's number
	parts       []silence.Merging // by Part; nil before the first fold
	// gaps of pods since the last fold; from how many on they are merged
	pending, foldAt int
}

// podRecord is the state of one pod that is not part of the sums.
type podRecord struct {
	next        int64 // index of the next interval to deliver, in PodStep
	lost        bool
	finished    bool
	connections int   // of the last interval
	ahead       int64 // of the run's clock, nanoseconds
	// end of the latest interval by which all gaps that had ended were delivered; 0 = none since the
	// record was decoded
	settled     int64
	load, probe silence.Stream
	probes      []silence.Stream     // by the shard's number, with several shards
	shards      []silence.PartStream // by the shard's number
	parts       []silence.PartStream // by Part
	stalls      []record.Stall       // the longest ones, by time
	ledger      record.LedgerCheck
}

// New returns an empty record. It panics unless step and pods are positive: both come from a
// validated plan.
func New(run string, start time.Time, step time.Duration, ops []string, pods int) *Series {
	if step <= 0 || pods <= 0 {
		panic(fmt.Sprintf("series with step %v and %d pods", step, pods))
	}
	s := &Series{
		Run:         run,
		Start:       start.Round(0).UTC(),
		PodStep:     step,
		Step:        step,
		LatencyStep: step,
		Ops:         slices.Clone(ops),
		readOnly:    make([]bool, len(ops)),
		Pods:        pods,
		pods:        make([]podRecord, pods),
		observed:    observations{agents: readings.NewAgents(pods)},
		common:      common{foldAt: leastFold},
	}
	for i := range s.pods {
		s.pods[i] = podRecord{load: silence.NewStream(), probe: silence.NewStream()}
	}
	return s
}

// SetTallies names the workload's counters. It panics after the first Add.
func (s *Series) SetTallies(names []string) {
	if len(s.intervals) > 0 {
		panic("tallies named after the first interval")
	}
	s.Tallies = slices.Clone(names)
}

func (s *Series) newInterval(i int64) record.Interval {
	iv := record.NewInterval(i, len(s.Ops))
	if len(s.Tallies) > 0 {
		iv.Tallies = make([]uint64, len(s.Tallies))
	}
	return iv
}

// Next is the index of the interval that the pod must deliver next, counted in PodStep.
func (s *Series) Next(pod int) int64 {
	return s.pods[pod].next
}

// Lose marks a pod that will deliver no further intervals although its record has not ended:
// Complete no longer waits for it. After its last interval it does not contribute to the figures,
// and a gap that all other pods have is a gap of the run.
func (s *Series) Lose(pod int) {
	s.pods[pod].lost = true
	s.seal()
}

// IsLost reports whether Lose was called for a pod.
func (s *Series) IsLost(pod int) bool {
	return s.pods[pod].lost
}

// IsFinished reports whether Finish was called for a pod.
func (s *Series) IsFinished(pod int) bool {
	return s.pods[pod].finished
}

// Finish marks a pod whose record has ended as planned. Pods bounded by a number of requests end at
// different times.
func (s *Series) Finish(pod int) {
	s.pods[pod].finished = true
	s.seal()
}

// Lost is the number of pods that were lost.
func (s *Series) Lost() int {
	n := 0
	for i := range s.pods {
		if s.pods[i].lost {
			n++
		}
	}
	return n
}

// LoadEnd is when the load ended, from the run's start. planned is its length, 0 if only a number
// of requests ends it. A load that ended earlier ended with its last outcome if allDone is set: it
// had sent all its requests. Otherwise it was interrupted; if the last interval has no outcome, the
// result is End.
func (s *Series) LoadEnd(planned time.Duration, allDone bool) time.Duration {
	end := s.End()
	if planned > 0 && end >= planned {
		return planned
	}
	for i := s.Len() - 1; i >= 0; i-- {
		iv := s.At(i)
		last := time.Duration(max(iv.LastOK, iv.LastError))
		switch {
		case last > end-s.PodStep, last >= 0 && allDone:
			return min(end, last)
		case !allDone:
			return end
		}
	}
	return end
}

// End is where the complete part ends, from the run's start. The last interval may reach beyond it
// when Step is not PodStep.
func (s *Series) End() time.Duration {
	if s.Ended() {
		return time.Duration(s.completeShares()) * s.PodStep
	}
	return time.Duration(s.Complete()) * s.Step
}

// Requests is how many requests have ended so far, with any outcome: a running count.
func (s *Series) Requests() uint64 {
	return s.requests
}

// Len is the number of intervals that any pod delivered.
func (s *Series) Len() int {
	switch share := s.share(); {
	case s.view != nil:
		return int(s.view.end)
	case s.fine != nil:
		return int((s.delivered() + share - 1) / share)
	}
	return len(s.intervals)
}

// At returns an interval, 0 <= i < Len. Pods is how many pods contributed to it; Gaps, ProbeGaps,
// ShardGaps, Servers, Unobserved and Agents are empty: the series keeps them for the whole run. The
// caller must not modify the interval.
func (s *Series) At(i int) *record.Interval {
	if s.view != nil {
		return s.view.at(int64(i))
	}
	if s.fine != nil {
		return s.newest(int64(i))
	}
	return &s.intervals[i]
}

// Window returns the complete intervals that begin in [from, to) as the indices first <= i < end.
func (s *Series) Window(from, to time.Duration) (first, end int) {
	n := int64(s.Complete())
	index := func(t time.Duration) int64 {
		if t <= 0 {
			return 0
		}
		i := int64(t / s.Step)
		if t%s.Step > 0 {
			i++
		}
		return min(i, n)
	}
	first, end = int(index(from)), int(index(to))
	return first, max(first, end)
}

// Complete is the number of leading intervals that every live pod has delivered; all of them once
// no pod is live.
func (s *Series) Complete() int {
	switch {
	case s.view != nil:
		return int(min(s.completeShares(), s.view.end))
	case s.Ended():
		return s.Len()
	}
	return int(s.completeShares() / s.share())
}

// share is how many intervals of a pod make one interval of the series.
func (s *Series) share() int64 {
	return int64(s.Step / s.PodStep)
}

// Ended reports whether every pod is lost or finished: the record will not grow.
func (s *Series) Ended() bool {
	for i := range s.pods {
		if !s.pods[i].lost && !s.pods[i].finished {
			return false
		}
	}
	return true
}

// completeShares is the length of the complete part in PodStep.
func (s *Series) completeShares() int64 {
	least, most := int64(-1), int64(0)
	for i := range s.pods {
		p := &s.pods[i]
		most = max(most, p.next)
		if !p.lost && !p.finished && (least < 0 || p.next < least) {
			least = p.next
		}
	}
	if least < 0 {
		return most
	}
	return least
}
