package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/truth"
)

// A figure that is text of three digits equals its limit, and exceeds it: the verdict is about the number.
func TestTruthVerdictsJudgeNumbers(t *testing.T) {
	const beyond = 5004 * time.Millisecond
	f := hit(func(m *impact.Impact) {
		m.Outage.Bounded, m.RecoveryTime = durations.Exactly(beyond), durations.Exactly(beyond)
	})
	faults := func(o v1alpha1.FaultObjectives) Judgement { return judgeFault(&o, f) }
	loads := func(o v1alpha1.Objectives) Judgement {
		return Load(&o, load(func(r *result.Load) {
			r.Total.Latency.P99, r.Total.ErrorRate, r.Total.Throughput = result.Seconds(beyond), 0.0100001, 989.96
		}))
	}
	for name, j := range map[string]Judgement{
		"outage of 5.004 s, limit 5 s":           faults(v1alpha1.FaultObjectives{MaxOutage: d(5 * time.Second)}),
		"recovery after 5.004 s, limit 5 s":      faults(v1alpha1.FaultObjectives{MaxRecoveryTime: d(5 * time.Second)}),
		"p99 of 5.004 s, limit 5 s":              loads(v1alpha1.Objectives{MaxLatencyP99: d(5 * time.Second)}),
		"error rate of 1.00001 %, limit 1 %":     loads(v1alpha1.Objectives{MaxErrorRate: new("1%")}),
		"throughput of 989.96/s, at least 990/s": loads(v1alpha1.Objectives{MinThroughput: new("990")}),
	} {
		o := judgedOne(t, j, v1alpha1.VerdictFail)
		figure, limit, _ := strings.Cut(o.Message, ", limit ")
		truth.Report(t, "T18", name, "Fail", fmt.Sprintf("%s: %s", j.Verdict, o.Message),
			j.Verdict == v1alpha1.VerdictFail && o.Actual != o.Limit && !strings.HasSuffix(figure, " is "+limit))
	}
}
