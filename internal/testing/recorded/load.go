// Package recorded makes the records of simulated loads, for tests of what is computed from them.
package recorded

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Step is the length of the intervals of these records.
const Step = 100 * time.Millisecond

// Load is a simulated run: requests are evenly spaced, the first half a spacing after the start, and succeed unless
// they fall into Down or Failing.
type Load struct {
	Rate    float64 // requests/s over all pods
	Length  time.Duration
	Pods    int              // default 1
	Down    []summary.Window // no answer at all: requests have no outcome
	Failing []summary.Window // every request fails with READONLY, at once
	Slow    []summary.Window // only every second request comes
	Probe   float64          // requests/s; without answers in Down, Failing and Aside
	Aside   []summary.Window // only the probe gets no answers
	Late    time.Duration    // of the first request
}

// Amid reports whether an instant is in one of the windows.
func Amid(list []summary.Window, t time.Duration) bool {
	for _, w := range list {
		if t >= w.From && t < w.To {
			return true
		}
	}
	return false
}

// Record makes the series that pods would have recorded.
func (l Load) Record(t *testing.T) *merged.Series {
	t.Helper()
	pods := max(l.Pods, 1)
	s := merged.New("run", time.Unix(0, 0), Step, []string{"get"}, pods)
	for p := range pods {
		for _, iv := range l.Intervals(p, pods) {
			if err := s.Add(p, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// Intervals makes those that one of the pods would have recorded, counted from 0.
func (l Load) Intervals(pod, pods int) []*record.Interval {
	list := make([]*record.Interval, int(l.Length/Step))
	for i := range list {
		list[i] = &record.Interval{
			Index:      int64(i),
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstError: -1,
			LastError:  -1,
			FirstOK:    -1,
			LastOK:     -1,
		}
	}
	latency := histogram.Buckets{{Index: 300, Count: 1}}
	spacing := time.Duration(float64(time.Second) / l.Rate)
	threshold := max(2*spacing*time.Duration(pods), 5*time.Millisecond)
	last := time.Duration(0)
	n := 0
	for t := l.Late + spacing/2; t < l.Length; t += spacing {
		n++
		if n%pods != pod || Amid(l.Slow, t) && n/pods%2 == 0 {
			continue
		}
		iv := list[t/Step]
		op := &iv.Ops[0]
		switch {
		case Amid(l.Down, t):
			op.Due++
			op.Sent++
		case Amid(l.Failing, t):
			op.Due++
			op.Sent++
			op.Fail++
			op.Errors[record.ClassReadOnly]++
			if iv.FirstError < 0 {
				iv.FirstError = int64(t)
			}
			iv.LastError = int64(t)
		default:
			op.Due++
			op.Sent++
			op.OK++
			op.Latency = histogram.Merge(op.Latency, latency)
			if iv.FirstOK < 0 {
				iv.FirstOK = int64(t)
			}
			iv.LastOK = int64(t)
			if t-last > threshold {
				iv.Gaps = append(iv.Gaps, record.Gap{From: int64(last), To: int64(t)})
			}
			last = t
		}
	}
	if l.Probe > 0 {
		l.probe(list)
	}
	return list
}

// probe adds what the probe of a pod would have recorded to its intervals.
func (l Load) probe(list []*record.Interval) {
	last, spacing := time.Duration(0), time.Duration(float64(time.Second)/l.Probe)
	for t := l.Late + spacing/2; t < l.Length; t += spacing {
		probe := &list[t/Step].Probe
		probe.Due++
		probe.Sent++
		if Amid(l.Down, t) || Amid(l.Failing, t) || Amid(l.Aside, t) {
			continue
		}
		probe.OK++
		if t-last > 2*spacing {
			list[t/Step].ProbeGaps = append(list[t/Step].ProbeGaps, record.Gap{From: int64(last), To: int64(t)})
		}
		last = t
	}
}

// PerSecond makes a series of one pod with these successes in each second, spread evenly over its intervals.
func PerSecond(t *testing.T, rates ...uint64) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), Step, []string{"get"}, 1)
	for _, rate := range rates {
		for range 10 {
			iv := &record.Interval{
				Index:      s.Next(0),
				Pods:       1,
				Ops:        make([]record.Op, 1),
				FirstError: -1,
				LastError:  -1,
				FirstOK:    -1,
				LastOK:     -1,
			}
			iv.Ops[0].OK = rate / 10
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// Repeat is n times the same rate.
func Repeat(n int, rate uint64) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = rate
	}
	return list
}

// Halved is a load that halves at an instant.
func Halved(at time.Duration, rate bool, think time.Duration) plan.Planned {
	return plan.Planned{Rate: rate, ThinkTime: think, Mean: func(from, to time.Duration) float64 {
		full := min(max(at-from, 0), to-from)
		return 1000 * (float64(full) + float64(to-from-full)/2) / float64(to-from)
	}}
}

// WithStalls is the record of a load whose generator did not run in some of the times in which it had no answers:
// nothing was sent in them.
func (l Load) WithStalls(t *testing.T, stalled ...summary.Window) *merged.Series {
	t.Helper()
	l.Down = append(l.Down, stalled...)
	s := merged.New("run", time.Unix(0, 0), Step, []string{"get"}, 1)
	for _, iv := range l.Intervals(0, 1) {
		for i, g := range iv.Gaps {
			for _, one := range stalled {
				if one.From < time.Duration(g.To) && time.Duration(g.From) < one.To {
					iv.Gaps[i].UnprovenHead = g.To - g.From
					iv.Stalls = append(iv.Stalls, record.Stall{From: int64(one.From), To: int64(one.To)})
				}
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}
