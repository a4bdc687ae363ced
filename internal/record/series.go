package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What Series.Add refuses. Errors wrap them.
var (
	ErrDuplicate = errors.New("interval already merged")              // harmless: the caller goes on
	ErrHole      = errors.New("interval ahead of the one expected")   // the caller must deliver Next first
	ErrEnded     = errors.New("record of this pod has ended already") // Lose or Finish was called
	ErrShape     = errors.New("interval does not fit the series")     // number of operations, number of the pod
)

// Series is the merged record of a run: one Interval per step, from the run's start, whatever number of pods it came from.
// What it says does not depend on the order in which pods delivered. It is not safe for concurrent use.
type Series struct {
	Run         string        // identifies the run
	Start       time.Time     // instant T, UTC
	PodStep     time.Duration // the step of the intervals that pods deliver
	Step        time.Duration // the step of At: PodStep, or a multiple of it after Coarsen
	LatencyStep time.Duration // the step of the histograms, a multiple of Step: each lies in the first interval of its stretch, the others' are empty
	Ops         []string      // names of the operations, in the order of Interval.Ops
	Tallies     []string      // names of the workload's counters, in the order of Interval.Tallies; see SetTallies
	Pods        int           // how many pods share the load
	Notes       []string      // sentences for people: what was coarsened and why

	intervals []Interval
	pods      []podRecord
	servers   []Server

	agentStep     time.Duration // of the generators' readings
	agentReadings int           // how many there are over all pods
}

// podRecord is what must be known of one pod beside the sums.
type podRecord struct {
	next        int64 // index, in PodStep, of the interval to deliver next
	lost        bool
	finished    bool
	connections int // of the last interval
	load, probe stream
	shards      []shardStream // by the shard's number
	agents      []AgentUse    // by time
}

// NewSeries returns an empty record. It panics unless step and pods are positive: both come from a checked plan.
func NewSeries(run string, start time.Time, step time.Duration, ops []string, pods int) *Series {
	if step <= 0 || pods <= 0 {
		panic(fmt.Sprintf("series with step %v and %d pods", step, pods))
	}
	s := &Series{
		Run: run, Start: start.Round(0).UTC(), PodStep: step, Step: step, LatencyStep: step,
		Ops: slices.Clone(ops), Pods: pods, pods: make([]podRecord, pods), agentStep: agentStep,
	}
	for i := range s.pods {
		s.pods[i] = podRecord{load: newStream(), probe: newStream()}
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

// Add merges an interval of a pod, exactly. Each pod's intervals must come in order and without holes: the error wraps ErrDuplicate or
// ErrHole otherwise, ErrEnded after Lose or Finish, ErrShape where the interval is not of this run. After an error nothing has changed.
// iv is only read and not kept.
func (s *Series) Add(pod int, iv *Interval) error {
	if err := s.check(pod, iv); err != nil {
		return err
	}
	p := &s.pods[pod]
	share := s.share()
	i := iv.Index / share
	if i == int64(len(s.intervals)) {
		s.intervals = append(s.intervals, s.newInterval(i))
	}
	sum := &s.intervals[i]
	s.mergeFigures(i, iv)
	if iv.Index%share == 0 {
		sum.Pods++
		sum.Connections += iv.Connections
	} else {
		sum.Connections += iv.Connections - p.connections
	}
	p.connections = iv.Connections
	p.next++
	begin, end := iv.Index*int64(s.PodStep), p.next*int64(s.PodStep)
	p.load.add(iv.Gaps, sumOK(iv.Ops), iv.FirstOK, iv.LastOK)
	first, last := int64(-1), int64(-1)
	if iv.Probe.OK > 0 {
		first, last = begin, end // intervals do not carry the probe's instants
	}
	p.probe.add(iv.ProbeGaps, iv.Probe.OK, first, last)
	p.addShards(iv, begin, end)
	s.addServers(iv.Servers)
	s.addAgents(pod, iv.Agents)
	return nil
}

// check says why an interval of a pod is refused.
func (s *Series) check(pod int, iv *Interval) error {
	if pod < 0 || pod >= s.Pods {
		return fmt.Errorf("%w: pod %d of %d", ErrShape, pod, s.Pods)
	}
	p := &s.pods[pod]
	switch {
	case len(iv.Ops) != len(s.Ops):
		return fmt.Errorf("%w: pod %d delivered %d operations, the run has %d", ErrShape, pod, len(iv.Ops), len(s.Ops))
	case len(iv.Tallies) > 0 && len(iv.Tallies) != len(s.Tallies):
		return fmt.Errorf("%w: pod %d delivered %d tallies, the run has %d", ErrShape, pod, len(iv.Tallies), len(s.Tallies))
	case len(iv.Shards) > MaxShards || slices.ContainsFunc(iv.ShardGaps, func(g ShardGap) bool { return g.Shard < 0 || g.Shard >= MaxShards }):
		return fmt.Errorf("%w: pod %d delivered a shard beyond %d", ErrShape, pod, MaxShards)
	case iv.Index < p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrDuplicate, pod, iv.Index, p.next)
	case p.lost || p.finished:
		return fmt.Errorf("%w: pod %d delivered %d", ErrEnded, pod, iv.Index)
	case iv.Index > p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrHole, pod, iv.Index, p.next)
	}
	return nil
}

func (s *Series) newInterval(i int64) Interval {
	iv := newInterval(i, len(s.Ops))
	if len(s.Tallies) > 0 {
		iv.Tallies = make([]uint64, len(s.Tallies))
	}
	return iv
}

func newInterval(i int64, ops int) Interval {
	return Interval{Index: i, Ops: make([]Op, ops), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1}
}

// mergeFigures adds everything that simply adds: all but Pods, Connections and the lists.
func (s *Series) mergeFigures(i int64, iv *Interval) {
	sum := &s.intervals[i]
	at := &s.intervals[i-i%int64(s.LatencyStep/s.Step)] // where the histograms lie
	for k := range iv.Ops {
		sum.Ops[k].Counts.add(&iv.Ops[k].Counts)
		at.Ops[k].merge(&iv.Ops[k])
	}
	sum.Probe.Counts.add(&iv.Probe.Counts)
	at.Probe.merge(&iv.Probe)
	sum.mergeInstants(iv)
	sum.mergeTallies(iv)
}

func (iv *Interval) mergeTallies(from *Interval) {
	for k, n := range from.Tallies {
		iv.Tallies[k] += n
	}
	iv.Shards = addShardCounts(iv.Shards, from.Shards)
}

func (iv *Interval) mergeInstants(from *Interval) {
	iv.FirstError, iv.FirstOK = earlier(iv.FirstError, from.FirstError), earlier(iv.FirstOK, from.FirstOK)
	iv.LastError, iv.LastOK = max(iv.LastError, from.LastError), max(iv.LastOK, from.LastOK)
	iv.MaxLag = max(iv.MaxLag, from.MaxLag)
}

// earlier is the smaller of two instants, of which -1 means none.
func earlier(a, b int64) int64 {
	if a < 0 || (b >= 0 && b < a) {
		return b
	}
	return a
}

func (c *Counts) add(from *Counts) {
	to, by := c.figures(), from.figures()
	for i := range to {
		*to[i] += *by[i]
	}
	for i := range c.Errors {
		c.Errors[i] += from.Errors[i]
	}
}

// merge adds the histograms.
func (o *Op) merge(from *Op) {
	to, by := o.histograms(), from.histograms()
	for i := range to {
		*to[i] = Merge(*to[i], *by[i])
	}
}

func sumOK(ops []Op) uint64 {
	var n uint64
	for i := range ops {
		n += ops[i].OK
	}
	return n
}

// Next is the index of the interval that the pod must deliver next, counted in PodStep.
func (s *Series) Next(pod int) int64 { return s.pods[pod].next }

// Lose says that a pod will deliver no more although it should have: Complete no longer waits for it. From its last interval on it has no part
// in the figures, and a gap is a gap of the run if all other pods have it.
func (s *Series) Lose(pod int) { s.pods[pod].lost = true }

// IsLost says whether Lose was called for a pod.
func (s *Series) IsLost(pod int) bool { return s.pods[pod].lost }

// Finish says that a pod's record has ended as planned. Pods bounded by a number of requests end at different times.
func (s *Series) Finish(pod int) { s.pods[pod].finished = true }

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

// LoadEnd is when the load ended, from the run's start. planned is its length, 0 where only a number of requests ends it. A load that was over before that ended with its
// last outcome: allDone says that it had sent all its requests. Otherwise it was interrupted, and where the last interval has no outcome, End is as good.
func (s *Series) LoadEnd(planned time.Duration, allDone bool) time.Duration {
	end := s.End()
	if planned > 0 && end >= planned {
		return planned
	}
	for i := len(s.intervals) - 1; i >= 0; i-- {
		last := time.Duration(max(s.intervals[i].LastOK, s.intervals[i].LastError))
		switch {
		case last > end-s.PodStep, last >= 0 && allDone:
			return min(end, last)
		case !allDone:
			return end
		}
	}
	return end
}

// End is where the complete part ends, from the run's start. The last interval may reach beyond it when Step is not PodStep.
func (s *Series) End() time.Duration {
	if s.Ended() {
		return time.Duration(s.completeShares()) * s.PodStep
	}
	return time.Duration(s.Complete()) * s.Step
}

// Len is the number of intervals that any pod delivered.
func (s *Series) Len() int { return len(s.intervals) }

// At returns an interval, 0 <= i < Len. Pods is how many pods contributed to it; Gaps, ProbeGaps, ShardGaps, Servers and Agents are empty: the series keeps them
// for the whole run. It is the series' own and must not be changed.
func (s *Series) At(i int) *Interval { return &s.intervals[i] }

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

// Complete is the number of leading intervals that every live pod delivered; all of them once no pod is live.
func (s *Series) Complete() int {
	if s.Ended() {
		return len(s.intervals)
	}
	return int(s.completeShares() / s.share())
}

// share is how many of the pods' intervals make one of the series.
func (s *Series) share() int64 { return int64(s.Step / s.PodStep) }

// Ended says that every pod is lost or finished: the record will not grow.
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

// Servers are the readings of INFO by time.
func (s *Series) Servers() []Server { return slices.Clone(s.servers) }

func (s *Series) addServers(servers []Server) {
	for i := range servers {
		at, _ := slices.BinarySearchFunc(s.servers, servers[i], compareServers)
		s.servers = slices.Insert(s.servers, at, servers[i])
	}
	if len(servers) > 0 {
		s.thinServers()
	}
}

func compareServers(a, b Server) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Address, b.Address), cmp.Compare(a.RunID, b.RunID),
		cmp.Compare(a.CommandsProcessed, b.CommandsProcessed), cmp.Compare(a.CPUSeconds, b.CPUSeconds))
}
