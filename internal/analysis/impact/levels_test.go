package impact

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// recordOfLevels makes the record of a load of 1000 requests/s times a level, which varies by so much from interval to
// interval.
func recordOfLevels(
	t *testing.T, length time.Duration, noise float64, level func(time.Duration) float64,
) *merged.Series {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
	for at := time.Duration(0); at < length; at += recorded.Step {
		n := uint64(100 * (level(at) + noise*r.NormFloat64()))
		iv := &record.Interval{
			Index: int64(at / recorded.Step), Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1,
			FirstOK: int64(at), LastOK: int64(at+recorded.Step) - 1,
		}
		iv.Ops[0].OK, iv.Ops[0].Due, iv.Ops[0].Sent, iv.Ops[0].Latency = n, n, n, histogram.Buckets{
			{Index: 300, Count: uint32(n)},
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A baseline that drifts does not say what would have been.
func TestTruthDrift(t *testing.T) {
	const at = 40 * time.Second
	for _, drift := range []float64{-0.25, -0.12, 0, 0.12, 0.3} {
		m := Analyze(recordOfLevels(t, 80*time.Second, 0.02, func(now time.Duration) float64 {
			return 1 - drift*max(0, (at-now).Seconds()/30)
		}), Fault{At: at}, Options{})
		truth.Report(t, "V7", fmt.Sprintf("the throughput changes by %+.0f %% in the 30 s before the fault: doubted",
			100*drift), fmt.Sprint(drift != 0),
			fmt.Sprintf("recovered %v, doubts %v", m.Recovered, m.Doubts), (reasons(m) == BaselineUnsteady) == (drift != 0))
	}
}

// The throughput is lower for exactly 10 s. The first good second still contains some of that.
func TestTruthLoweredThroughput(t *testing.T) {
	const at, lasted = 40 * time.Second, 10 * time.Second
	for _, lower := range []float64{0.11, 0.15, 0.3, 0.5, 0.9} {
		for _, noise := range []float64{0, 0.01, 0.03} {
			m := Analyze(recordOfLevels(t, 80*time.Second, noise, func(now time.Duration) float64 {
				if now >= at && now < at+lasted {
					return 1 - lower
				}
				return 1
			}), Fault{At: at}, Options{})
			width := m.RecoveryTime.AtMost - m.RecoveryTime.AtLeast
			truth.Report(t, "V8", fmt.Sprintf("the throughput is %.0f %% lower for 10 s, and varies by %.0f %%: recovery",
				100*lower, 100*noise), lasted.String(),
				fmt.Sprint(m.RecoveryTime),
				m.RecoveryTime.AtLeast <= lasted && lasted <= m.RecoveryTime.AtMost &&
					(noise > 0 || m.RecoveryTime.Value == lasted && width <= 2*recorded.Step) && width <= 2*time.Second)
		}
	}
}
