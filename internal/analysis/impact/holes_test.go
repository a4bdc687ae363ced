package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// One of two pods had to forget 2 s of its record, which count as zero: that is a dip of half of the throughput which
// no client saw.
func TestTruthMissingIntervalsDoubtTheFault(t *testing.T) {
	const from, to = 410, 430
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
	for pod, l := range []recorded.Load{{Rate: 1000, Length: 90 * time.Second}, {Rate: 1000, Length: 90 * time.Second}} {
		for i, iv := range l.Intervals(pod, 2) {
			if pod == 1 && i >= from && i < to {
				iv = &record.Interval{
					Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
				}
			}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(pod)
	}
	s.AddHole(1, from, to)
	near, far := Fault{At: 40 * time.Second}, Fault{At: 75 * time.Second}
	for name, c := range map[string]struct {
		fault Fault
		want  string
	}{
		"in the window of the fault": {near, IntervalsMissing},
		"before its baseline":        {far, ""},
		"while it was active":        {Fault{At: 25 * time.Second, Active: seconds(25, 42)}, IntervalsMissing},
	} {
		m := Analyze(s, c.fault, Options{})
		truth.Report(t, "holes", "a pod's record of 2 s is missing, "+name, c.want, reasons(m), reasons(m) == c.want)
	}
}
