//go:build integration

package accuracy

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthStalledGeneratorIsNoOutage stops the load generator for 300 ms, while Redis serves.
func TestTruthStalledGeneratorIsNoOutage(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	generators := open.start(t, plan.Target{Addresses: []string{redistest.Start(t).Address()}}, 6*time.Second)
	await.Pass(3*time.Second, "the load before the stall is the baseline")
	stopped := time.Now()
	if err := generators.processes[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await.Pass(stall, "the length of the stall")
	if err := generators.processes[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var m impact.Impact
	generators.end(t, func(series *merged.Series, since func(time.Time) time.Duration) {
		m = impact.Analyze(series, impact.Fault{At: since(stopped)}, impact.Options{
			BaselineMinimum: time.Second,
			SustainFor:      time.Second,
		})
	})
	doubted := "no doubt"
	for _, d := range m.Doubts {
		if d.Reason == impact.GeneratorStalled {
			doubted = d.Reason
		}
	}
	truth.Report(t, "T11", "the load generator is stopped for 300 ms, Redis is healthy", "at least 0s, GeneratorStalled",
		fmt.Sprintf("at least %s, at most %s, %s", m.Outage.AtLeast.Round(time.Millisecond),
			m.Outage.AtMost.Round(time.Millisecond), doubted),
		m.Outage.AtLeast < stall/2 && m.Outage.AtMost >= stall && doubted == impact.GeneratorStalled)
}
