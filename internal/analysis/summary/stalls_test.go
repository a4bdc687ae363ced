package summary

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

const (
	ms   = time.Millisecond
	step = 100 * ms
)

// stalledLoad is a record of 4 s with 100 requests/s of 1 ms. A pod does not run from 1 s to 1.4 s: the 40 requests
// that were due are sent then, 10 per interval, so that the last one of the queue is sent at 1.8 s. In the interval at
// 3 s the server needs 300 ms for every reply.
func stalledLoad(t *testing.T, pods int, stalls ...record.Stall) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, pods)
	for i := range int64(40) {
		at := time.Duration(i) * step
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: int64(at), LastOK: int64(at), FirstError: -1, LastError: -1,
		}
		latency, n := ms, uint32(10)
		switch {
		case at >= time.Second && at < 1400*ms:
			n, iv.FirstOK, iv.LastOK = 0, -1, -1
		case at >= 1400*ms && at < 1800*ms:
			n, latency = 20, 400*ms-(at-1400*ms)
			iv.MaxLag = int64(latency)
		case at == 3*time.Second:
			latency = 300 * ms
		}
		var h histogram.Histogram
		h.RecordN(int64(latency), n)
		iv.Ops[0].Sent, iv.Ops[0].OK, iv.Ops[0].Latency = uint64(n), uint64(n), h.AppendTo(nil)
		if i == 14 {
			iv.Stalls = stalls
		}
		for pod := range pods {
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
			iv.Stalls = nil
		}
	}
	for pod := range pods {
		s.Finish(pod)
	}
	return s
}

func TestStalls(t *testing.T) {
	stall := record.Stall{From: int64(time.Second), To: int64(1400 * ms)}
	loops := []record.Stall{
		stall,
		{From: stall.From + 1, To: stall.To - 1},
		{From: int64(1380 * ms), To: int64(1390 * ms)},
	}
	for _, tt := range []struct {
		name         string
		pods         int
		stalls       []record.Stall
		from         time.Duration
		without      []Window
		length       time.Duration
		p99, atLeast time.Duration
		share        float64
		nothing      bool
	}{
		{name: "no stall", pods: 1, nothing: true},
		{
			name:    "a stall",
			pods:    1,
			stalls:  []record.Stall{stall},
			length:  400 * ms,
			p99:     400 * ms,
			atLeast: 300 * ms,
			share:   0.1,
		},
		{name: "of several loops", pods: 1, stalls: loops, length: 400 * ms, p99: 400 * ms, atLeast: 300 * ms, share: 0.1},
		{
			name:    "of one pod of two",
			pods:    2,
			stalls:  []record.Stall{stall},
			length:  400 * ms,
			p99:     400 * ms,
			atLeast: 300 * ms,
			share:   0.05,
		},
		{
			name:    "before the measured part, whose first requests it delays",
			pods:    1,
			stalls:  []record.Stall{stall},
			from:    1500 * ms,
			p99:     300 * ms,
			atLeast: 300 * ms,
		},
		{
			name:    "in a fault's window",
			pods:    1,
			stalls:  []record.Stall{stall},
			without: []Window{{900 * ms, 2 * time.Second}},
			p99:     300 * ms,
			atLeast: 300 * ms,
		},
	} {
		s := stalledLoad(t, tt.pods, tt.stalls...)
		found := StallsTo(s, tt.from, s.End(), tt.without)
		if tt.nothing {
			if found != nil {
				t.Errorf("%s: %+v", tt.name, found)
			}
			continue
		}
		if found == nil || found.Length != tt.length || math.Abs(found.Share-tt.share) > 1e-9 {
			t.Errorf("%s: %+v, want %v, %v of the time", tt.name, found, tt.length, tt.share)
			continue
		}
		sum := SummarizeWithout(s, tt.from, s.End(), tt.without)
		if (sum.Latency.P99-tt.p99).Abs() > ms || (found.Latency.P99-tt.atLeast).Abs() > ms ||
			found.Latency.Count != sum.Latency.Count {
			t.Errorf("%s: p99 %v, at least %v; want %v and %v: what the server needed", tt.name, sum.Latency.P99,
				found.Latency.P99, tt.p99, tt.atLeast)
		}
	}
}

// A stall excuses its own length, not a queue that is longer.
func TestStallOfABusyServer(t *testing.T) {
	s := stalledLoad(t, 1, record.Stall{From: int64(1390 * ms), To: int64(1400 * ms)})
	if found := StallsTo(s, 0, s.End(), nil); found == nil || (found.Latency.P99-390*ms).Abs() > ms {
		t.Errorf("%+v, want a p99 of 390 ms at least: 10 ms of its 400 ms", found)
	}
}

// The record keeps the longest stalls only: any other request can have been delayed by a shorter one.
func TestStallsThatAreNotKept(t *testing.T) {
	var many []record.Stall
	for i := range int64(merged.MaxStalls) {
		many = append(many, record.Stall{
			From: int64(time.Second) + i*int64(10*ms),
			To:   int64(time.Second) + i*int64(10*ms) + int64(7*ms),
		})
	}
	many = slices.Clip(many)
	s := stalledLoad(t, 1, many...)
	if found := StallsTo(s, 2500*ms, s.End(), nil); found == nil || (found.Latency.P99-293*ms).Abs() > ms {
		t.Errorf("%+v, want a p99 of 293 ms at least: 300 ms less a stall", found)
	}
}
