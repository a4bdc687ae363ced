package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// TestOutageUnseenByASlowPod: one pod has 1000 successes/s, another 20/s. The gaps of 60 ms that the slow one has in
// any case are not in its log: an outage as long goes unseen.
func TestOutageUnseenByASlowPod(t *testing.T) {
	const at, out = 40 * time.Second, 60 * time.Millisecond
	for _, c := range []struct {
		slow            float64
		atLeast, atMost time.Duration // of the upper bound
	}{
		{1000, 5 * ms, 5 * ms},
		{20, out, 105 * ms},
	} {
		s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
		down := []summary.Window{{From: at, To: at + out}}
		if c.slow == 1000 {
			down = nil
		}
		for pod, rate := range []float64{1000, c.slow} {
			for _, iv := range (recorded.Load{Rate: rate, Length: time.Minute, Down: down}).Intervals(0, 1) {
				if err := s.Add(pod, iv); err != nil {
					t.Fatal(err)
				}
			}
			s.Finish(pod)
		}
		if m := Analyze(s, Fault{At: at}, Options{}); m.Outage.Value != 0 || m.Outage.AtMost < c.atLeast ||
			m.Outage.AtMost > c.atMost {
			t.Errorf("slow pod with %.0f/s: outage %v, want at most between %v and %v", c.slow, m.Outage, c.atLeast, c.atMost)
		}
	}
}
