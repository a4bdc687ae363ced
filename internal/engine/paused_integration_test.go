//go:build integration

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthPausedWrites: CLIENT PAUSE WRITE holds 2 % of the requests for 3 s, and none of them fails. The rate hardly
// falls, and reads go on. On a machine that lets the load generator run the figures are narrow and certain; on any they
// contain the pause.
func TestTruthPausedWrites(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second
	server := redistest.Start(t)
	p := testPlan(server.Address())
	p.Info = 0
	p.Shape = plan.Shape{Rate: 1000, Duration: 14 * time.Second}
	p.Client.Connections, p.Client.RequestTimeout = 200, 8*time.Second
	p.Workload.Commands[0].Weight, p.Workload.Commands[1].Weight = 1, 49
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	await.PassTo(start.Add(6*time.Second), "the schedule: the load before the pause is the baseline")
	at, waited := time.Since(start), server.Waited()
	server.Do("CLIENT", "PAUSE", fmt.Sprint(pause.Milliseconds()), "WRITE")
	await.Pass(100*time.Millisecond, "the server writes the replies to earlier commands")
	// Redis counts from the millisecond in which the command began, and may write replies to earlier ones only when it
	// runs again.
	atLeast := pause - time.Millisecond - (server.Waited() - waited)
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	// the pause ends when the server runs: a wait counts once it is over
	late := 50*time.Millisecond + server.Waited() - waited
	m := impact.Analyze(seriesOf(t, p, o), impact.Fault{At: at}, impact.Options{
		BaselineMinimum: time.Second,
		SustainFor:      2 * time.Second,
	})
	contains := func(b durations.Bounded) bool {
		return b.AtLeast <= pause+late && atLeast <= b.AtMost
	}
	of := m.Outage.Of
	good := contains(m.Outage.Bounded) && m.Outages.Probe.AtMost >= atLeast &&
		(!m.Recovered || m.RecoveryTime.AtMost >= atLeast)
	if len(m.Doubts) == 0 { // the machine let the load generator run
		good = good && (of == impact.Writes || of == impact.Probe) && m.Outage.AtLeast > pause-300*time.Millisecond &&
			m.Recovered && m.TimeToImpact.Known()
	}
	text := func(b durations.Bounded) string {
		if !b.Known() {
			return "unknown"
		}
		return fmt.Sprintf("%s (%s to %s)", b.Value.Round(time.Millisecond), b.AtLeast.Round(time.Millisecond),
			b.AtMost.Round(time.Millisecond))
	}
	truth.Report(t, "T3", "2% of 1000 requests/s are SETs that CLIENT PAUSE WRITE holds for 3 s, requestTimeout 8s",
		"outage of Writes or the probe, server outage and recovery time contain 3s",
		fmt.Sprintf("outage of %s %s, server outage %s, recovery time %s, doubts %v", of, text(m.Outage.Bounded),
			text(m.Outages.Probe), text(m.RecoveryTime), m.Doubts), good)
}
