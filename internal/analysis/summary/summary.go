package summary

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Figures are the results of one operation, or of all, over a part of a run.
type Figures struct {
	Requests   uint64 // ok + fail + unknown + dropped
	OK         uint64
	Drained    uint64 // of OK, those after the load's planned end
	Fail       uint64
	Unknown    uint64
	Dropped    uint64
	Missed     uint64                    // of OK, reads of what does not exist
	Redirected uint64                    // redirections that were followed
	ByClass    [record.NumClasses]uint64 // Fail and Unknown
	ErrorRate  float64                   // (fail + unknown + dropped) / Requests; 0 without requests
	Throughput float64                   // successes/s, without drained ones
	BytesOut   uint64
	BytesIn    uint64
	Latency    Latency // of successes: response time (open loop), service time (closed loop)
	Service    Latency // open loop: from the send
}

// Operation is the figures of one operation.
type Operation struct {
	Name string
	Figures
}

// Summary is the figures of the measured part of a run.
type Summary struct {
	Figures
	Measured   time.Duration // its length: from measuredFrom to the end of the complete record
	MaxLag     time.Duration // open loop: the longest time from an arrival's due time to its send
	Operations []Operation   // in the plan's order
	Tallies    []uint64      // sums of the workload's own counters, in the order of Series.Tallies
	// of a deployment with several: one that is down is not visible in the total
	Shards []ShardFigures
}

// ShardFigures are the figures of one shard.
type ShardFigures struct {
	OK, Errors uint64  // Errors: fail and unknown
	Throughput float64 // successes/s
}

// Summarize sums the complete record from measuredFrom on, in whole intervals. Where histograms
// span several intervals (Series.LatencyStep), those that begin before measuredFrom are left out of
// the latency.
func Summarize(s *merged.Series, measuredFrom time.Duration) Summary {
	return SummarizeTo(s, measuredFrom, s.End())
}

// SummarizeTo is Summarize for a load that ended at an instant within the record's last interval
// (Series.LoadEnd): a rate counts the time until then.
func SummarizeTo(s *merged.Series, measuredFrom, loadEnd time.Duration) Summary {
	return SummarizeWithout(s, measuredFrom, loadEnd, nil)
}

// SummarizeWithout is SummarizeTo without the intervals and histograms that overlap one of the
// windows.
func SummarizeWithout(
	s *merged.Series, measuredFrom, loadEnd time.Duration, without []Window,
) Summary {
	return summarize(s, partTo(s, measuredFrom, loadEnd, without))
}

func partTo(s *merged.Series, measuredFrom, loadEnd time.Duration, without []Window) part {
	first, end := s.Window(measuredFrom, s.End())
	return part{
		first:      first,
		end:        end,
		latencyEnd: end,
		took:       loadEnd - time.Duration(first)*s.Step,
		without:    without,
	}
}

// SummarizeWindow sums the intervals that are completely within [from, to), and the histograms that
// are, which may span several intervals. In a coarsened record there may be successes without a
// latency.
func SummarizeWindow(s *merged.Series, from, to time.Duration) Summary {
	return summarize(s, partWithin(s, from, to))
}

func partWithin(s *merged.Series, from, to time.Duration) part {
	first, end := s.Window(from, to)
	if time.Duration(end)*s.Step > to {
		end = max(first, end-1)
	}
	return part{
		first:      first,
		end:        end,
		latencyEnd: int((to-s.LatencyStep)/s.Step) + 1,
		took:       time.Duration(end-first) * s.Step,
	}
}

// part is a part of a record: the intervals [first, end), with a duration of took, and the
// histograms that begin in [first, latencyEnd), except those that overlap a window of without.
type part struct {
	first, end, latencyEnd int
	took                   time.Duration
	without                []Window
}

func summarize(s *merged.Series, p part) Summary {
	type latencies struct{ latency, service histogram.Distribution }
	var all latencies
	each := make([]latencies, len(s.Ops))
	sum := newSummary(s)
	for i := p.first; i < p.end; i++ {
		from := time.Duration(i) * s.Step
		if p.excludes(from, from+s.Step) {
			continue
		}
		iv := s.At(i)
		sum.addInterval(iv)
		for k := range iv.Ops {
			op := &iv.Ops[k]
			sum.add(&op.Counts)
			sum.Operations[k].add(&op.Counts)
			if i >= p.latencyEnd || p.excludes(from, from+s.LatencyStep) {
				continue
			}
			for _, l := range []*latencies{&all, &each[k]} {
				l.latency.Add(op.Latency)
				l.service.Add(op.Service)
			}
		}
	}
	sum.Measured = p.measured(s)
	for k := range sum.Shards {
		if one := &sum.Shards[k]; sum.Measured > 0 {
			one.Throughput = float64(one.OK) / sum.Measured.Seconds()
		}
	}
	sum.finish(sum.Measured, &all.latency, &all.service)
	for k := range sum.Operations {
		sum.Operations[k].finish(sum.Measured, &each[k].latency, &each[k].service)
	}
	return sum
}

// addInterval adds what an interval counts apart from its operations.
func (s *Summary) addInterval(iv *record.Interval) {
	for k, n := range iv.Tallies {
		s.Tallies[k] += n
	}
	for k, n := range iv.Shards[:min(len(iv.Shards), len(s.Shards))] {
		s.Shards[k].OK += n.OK
		s.Shards[k].Errors += n.Errors
	}
	s.MaxLag = max(s.MaxLag, time.Duration(iv.MaxLag))
}

// excludes reports whether [from, to) overlaps an excluded window.
func (p *part) excludes(from, to time.Duration) bool {
	return slices.ContainsFunc(p.without, func(w Window) bool { return w.From < to && from < w.To })
}

// measured is the length of the part without what it excludes. Nothing is measured in intervals
// after the load's end: they have only what was drained. A load that lasts longer than its record,
// as an open loop does after its last reply, is measured until its end.
func (p *part) measured(s *merged.Series) (length time.Duration) {
	until := time.Duration(p.first)*s.Step + p.took
	for i := p.first; i < p.end; i++ {
		from := time.Duration(i) * s.Step
		if !p.excludes(from, from+s.Step) {
			length += max(0, min(s.Step, until-from))
		}
	}
	recorded := time.Duration(p.end) * s.Step
	if until > recorded && !p.excludes(recorded, until) {
		length += until - recorded
	}
	return length
}

func newSummary(s *merged.Series) Summary {
	var sum Summary
	sum.Operations = make([]Operation, len(s.Ops))
	for k, name := range s.Ops {
		sum.Operations[k].Name = name
	}
	if n := len(s.Tallies); n > 0 {
		sum.Tallies = make([]uint64, n)
	}
	if n := s.Shards(); n > 0 {
		sum.Shards = make([]ShardFigures, n)
	}
	return sum
}

func (f *Figures) add(c *record.Counts) {
	f.OK += c.OK
	f.Drained += c.Drained
	f.Fail += c.Fail
	f.Unknown += c.Unknown
	f.Dropped += c.Dropped
	f.Missed += c.Missed
	f.Redirected += c.Redirected
	f.BytesOut += c.BytesOut
	f.BytesIn += c.BytesIn
	for class, n := range c.Errors {
		f.ByClass[class] += n
	}
}

func (f *Figures) finish(length time.Duration, latency, service *histogram.Distribution) {
	bad := f.Fail + f.Unknown + f.Dropped
	f.Requests = f.OK + bad
	if f.Requests > 0 {
		f.ErrorRate = float64(bad) / float64(f.Requests)
	}
	if length > 0 {
		f.Throughput = float64(f.OK-f.Drained) / length.Seconds()
	}
	f.Latency, f.Service = LatencyOf(latency), LatencyOf(service)
}
