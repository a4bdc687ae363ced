package summary

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Requests that were due while the load generator waited for a CPU are sent in a bunch and wait for one another in the
// server. So the service times of an open loop prove of Redis only what those tell that are not the slowest: as many of
// them as were due meanwhile.
func TestServiceTimesOfABunch(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		waited float64 // of each second
		least  time.Duration
	}{{0, 300 * us}, {0.005, 300 * us}, {0.1, 100 * us}} {
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(100) {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: i * int64(step), LastOK: (i+1)*int64(step) - 1,
				FirstError: -1, LastError: -1,
			}
			var service, latency histogram.Histogram
			service.RecordN(int64(100*us), 97)
			service.RecordN(int64(300*us), 3) // the 98th hundredth and above
			latency.RecordN(int64(150*us), 97)
			latency.RecordN(int64(3*ms), 3)
			op := &iv.Ops[0]
			op.Sent, op.OK, op.Latency, op.Service = 100, 100, latency.AppendTo(nil), service.AppendTo(nil)
			at := (i + 1) * int64(step)
			iv.Agents = []record.AgentUse{
				{
					At:            at,
					BusyThreads:   1,
					CPUSeconds:    0.1 * time.Duration(at).Seconds(),
					WaitedSeconds: c.waited * time.Duration(at).Seconds(),
				},
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		stalls := StallsTo(s, 0, s.End(), nil)
		if c.waited == 0 {
			if stalls != nil {
				t.Errorf("%+v without a wait", stalls)
			}
			continue
		}
		if got := stalls.Service.P99; got < c.least*97/100 || got > c.least*103/100 {
			t.Errorf("waited for %v of the time: the p99 from the send is at least %s, want %s", c.waited, got, c.least)
		}
	}
}
