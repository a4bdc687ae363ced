package impact

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/truth"
)

// longRun adds the intervals [from, to) of a load of 1,000 requests/s, of which none succeeds for a second from 30 s
// after t0 on.
func longRun(t *testing.T, s *merged.Series, from, to time.Duration, down time.Duration) {
	t.Helper()
	for i := int64(from / s.PodStep); i < int64(to/s.PodStep); i++ {
		begin, end := i*int64(s.PodStep), (i+1)*int64(s.PodStep)
		iv := record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
		}
		per := uint64(1000 * s.PodStep / time.Second)
		op := &iv.Ops[0]
		op.Sent, op.Due = per, per
		if begin >= int64(down) && begin < int64(down+time.Second) {
			op.Fail = per
			op.Errors[record.ClassRefused] = per
			iv.FirstError, iv.LastError = begin, end-1e6
		} else {
			op.OK = per
			iv.FirstOK, iv.LastOK = begin, end-1e6
			op.Latency = histogram.Buckets{{Index: 300, Count: uint32(per)}}
			if begin == int64(down+time.Second) {
				iv.Gaps = []record.Gap{{From: int64(down) - 1e6, To: begin}}
			}
		}
		if err := s.Add(0, &iv); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTruthLongRuns: an outage of a second, after 4 hours of a run whose record was coarsened, also by a checkpoint
// from which the operator continued.
// Its figures are those of a short run.
func TestTruthLongRuns(t *testing.T) {
	t.Parallel()
	const before, t0 = 4 * time.Hour, 4*time.Hour + 100*time.Second
	const step = 100 * time.Millisecond
	s := merged.New("run", time.Time{}, step, []string{"get", "set"}, 1)
	longRun(t, s, 0, before, t0)
	for s.Step < 10*time.Second {
		s.Coarsen("this test can look at it")
	}
	longRun(t, s, before, t0+500*time.Millisecond, t0)
	s.Keep("fault", t0-2*time.Minute, 1<<62)
	data, err := s.Encode(900 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = merged.Decode(data); err != nil {
		t.Fatal(err)
	}
	longRun(t, s, t0+500*time.Millisecond, t0+10*time.Minute, t0)
	f := Fault{At: t0, Deadline: 2 * time.Minute}
	for _, when := range []string{"10 minutes after it", "after the end"} {
		m := Analyze(s, f, Options{})
		scenario := "an outage of 1 s after 4 h, counts per " + s.Step.String() + ", seen " + when
		truth.Report(t, "T4", scenario+": dip", "1.00", fmt.Sprintf("%.2f", m.Dips.All), m.Dips.All == 1)
		truth.Report(t, "T4", scenario+": recoveryTime", "1s", m.RecoveryTime.Value.String(),
			m.RecoveryTime.Value == time.Second)
		truth.Report(t, "T4", scenario+": lostRequests", "1000", fmt.Sprint(m.LostRequests), m.LostRequests == 1000)
		truth.Report(t, "T4", scenario+": doubts", "[]", fmt.Sprint(m.Doubts), len(m.Doubts) == 0)
		if !Settled(s, f, Options{}) {
			t.Error("not settled")
		}
		if ok, why := throughput.Steady(s, 30*time.Second, 0, plan.Planned{}); !ok {
			t.Error(why)
		}
		s.Finish(0)
	}
	// What was not kept is doubted.
	m := Analyze(s, Fault{At: time.Hour, Deadline: 2 * time.Minute}, Options{})
	doubted := len(m.Doubts) == 1 && m.Doubts[0].Reason == CoarseRecord
	truth.Report(t, "T4", "a fault whose record was not kept", CoarseRecord, fmt.Sprint(m.Doubts), doubted)
}
