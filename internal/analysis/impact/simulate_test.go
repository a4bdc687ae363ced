package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

const (
	ms   = time.Millisecond
	step = 100 * ms
)

// load is a simulated run: requests are evenly spaced, the first half a spacing after the start, and succeed unless they fall into down or failing.
type load struct {
	rate    float64 // requests/s over all pods
	length  time.Duration
	pods    int      // default 1
	down    []Window // no answer at all: requests have no outcome
	failing []Window // every request fails with READONLY, at once
	slow    []Window // only every second request comes
	probe   float64  // requests/s; without answers in down, failing and aside
	aside   []Window // only the probe gets no answers
	late    time.Duration
}

func amid(list []Window, t time.Duration) bool {
	for _, w := range list {
		if t >= w.From && t < w.To {
			return true
		}
	}
	return false
}

// record makes the series that pods would have recorded.
func (l load) record(t *testing.T) *record.Series {
	t.Helper()
	pods := max(l.pods, 1)
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, pods)
	for p := range pods {
		for _, iv := range l.intervals(p, pods) {
			if err := s.Add(p, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func (l load) intervals(pod, pods int) []*record.Interval {
	list := make([]*record.Interval, int(l.length/step))
	for i := range list {
		list[i] = &record.Interval{Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1}
	}
	latency := record.Buckets{{Index: 300, Count: 1}}
	spacing := time.Duration(float64(time.Second) / l.rate)
	threshold := max(2*spacing*time.Duration(pods), 5*ms)
	last := time.Duration(0)
	n := 0
	for t := l.late + spacing/2; t < l.length; t += spacing {
		n++
		if n%pods != pod || amid(l.slow, t) && n/pods%2 == 0 {
			continue
		}
		iv := list[t/step]
		op := &iv.Ops[0]
		switch {
		case amid(l.down, t):
			op.Due++
			op.Sent++
		case amid(l.failing, t):
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
			op.Latency = record.Merge(op.Latency, latency)
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
	if l.probe > 0 {
		last = 0
		spacing := time.Duration(float64(time.Second) / l.probe)
		for t := l.late + spacing/2; t < l.length; t += spacing {
			probe := &list[t/step].Probe
			probe.Due++
			probe.Sent++
			if amid(l.down, t) || amid(l.failing, t) || amid(l.aside, t) {
				continue
			}
			probe.OK++
			if t-last > 2*spacing {
				list[t/step].ProbeGaps = append(list[t/step].ProbeGaps, record.Gap{From: int64(last), To: int64(t)})
			}
			last = t
		}
	}
	return list
}

func near(a, b, within float64) bool { return a-b <= within && b-a <= within }
