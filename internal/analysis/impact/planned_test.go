package impact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// The plan halves the load 5 s after a fault: what is not asked for is not lost.
func TestTruthPlannedChangeIsNoImpact(t *testing.T) {
	const length = 90 * time.Second
	half := summary.Window{From: 45 * time.Second, To: length}
	fault := Fault{At: 40 * time.Second, Deadline: 30 * time.Second}
	harmless := recorded.Load{Rate: 1000, Length: length, Slow: []summary.Window{half}}.Record(t)
	kill := recorded.Load{
		Rate:   1000,
		Length: length,
		Slow:   []summary.Window{half},
		Down:   []summary.Window{seconds(40, 46)},
	}.Record(t)
	harmless.Finish(0)
	kill.Finish(0)

	m := Analyze(harmless, fault, Options{Planned: recorded.Halved(45*time.Second, true, 0)})
	truth.Report(t, "T8", "rate planned to halve 5 s after a harmless fault", "recovered after 0s, dip 0.00, lost 0, ",
		fmt.Sprintf("recovered after %s, dip %.2f, lost %.0f, %s", m.RecoveryTime.Value, m.Dips.All, m.LostRequests,
			reasons(m)),
		m.Recovered && m.RecoveryTime.Value == 0 && m.Dips.All < 0.01 && m.LostRequests < 1 && len(m.Doubts) == 0)

	m = Analyze(kill, fault, Options{Planned: recorded.Halved(45*time.Second, true, 0)})
	truth.Report(t, "T8", "rate planned to halve 5 s after a kill of 6 s", "recovered after 6s, dip 1.00, lost 5500, ",
		fmt.Sprintf("recovered after %s, dip %.2f, lost %.0f, %s", m.RecoveryTime.Value.Round(10*ms), m.Dips.All,
			m.LostRequests, reasons(m)),
		m.Recovered && m.RecoveryTime.Value.Round(10*ms) == 6*time.Second && m.Dips.All == 1 &&
			near(m.LostRequests, 5500, 1) && near(m.RecoveredThroughput, 1, 0.01) && len(m.Doubts) == 0)

	m = Analyze(harmless, fault, Options{Planned: recorded.Halved(45*time.Second, false, 0)})
	truth.Report(t, "T8", "users planned to halve 5 s after a harmless fault", PlanChanged, reasons(m),
		reasons(m) == PlanChanged)

	m = Analyze(harmless, fault, Options{Planned: recorded.Halved(45*time.Second, false, time.Second)})
	truth.Report(t, "T8", "users with 1 s of think time planned to halve", "dip 0.00, ",
		fmt.Sprintf("dip %.2f, %s", m.Dips.All, reasons(m)), m.Dips.All < 0.01 && len(m.Doubts) == 0)
}

func TestPlanChangeThatCannotBeFollowed(t *testing.T) {
	doubling := plan.Planned{Rate: true, Mean: func(from, _ time.Duration) float64 {
		if from >= 45*time.Second {
			return 2000
		}
		return 1000
	}}
	for _, c := range []struct {
		name  string
		load  recorded.Load
		asked plan.Planned
		want  string
	}{
		{"Redis does not serve a rate that rises", recorded.Load{Rate: 1000}, doubling, "rises to 2000 requests/s"},
		{"Redis was saturated before", recorded.Load{Rate: 500}, doubling, "from 1000 requests/s to 2000 requests/s"},
		{
			"the load ends",
			recorded.Load{Rate: 1000, Down: []summary.Window{seconds(45, 90)}},
			plan.Planned{Rate: true, Mean: func(from, _ time.Duration) float64 {
				if from >= 45*time.Second {
					return 0
				}
				return 1000
			}},
			"falls to 0 requests/s",
		},
		{
			"nothing is planned at the fault",
			recorded.Load{Rate: 1000},
			plan.Planned{Mean: func(time.Duration, time.Duration) float64 { return 0 }},
			"nothing is planned",
		},
		{"users before the baseline", recorded.Load{Rate: 1000}, plan.Planned{Mean: func(from, _ time.Duration) float64 {
			if from < 10*time.Second {
				return 50
			}
			return 100
		}}, ""},
		{
			"another test of a benchmark before the baseline",
			recorded.Load{Rate: 1000},
			plan.Planned{Changes: []time.Duration{9 * time.Second, 80 * time.Second}},
			"",
		},
		{
			"another test of a benchmark in the baseline",
			recorded.Load{Rate: 1000},
			plan.Planned{Changes: []time.Duration{25 * time.Second}},
			"begins 25s after the start",
		},
		{
			"another test of a benchmark after the fault",
			recorded.Load{Rate: 1000},
			plan.Planned{Changes: []time.Duration{45 * time.Second}},
			"begins 45s after the start",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.load.Length = 90 * time.Second
			s := c.load.Record(t)
			s.Finish(0)
			m := Analyze(s, Fault{At: 40 * time.Second, Deadline: 30 * time.Second}, Options{Planned: c.asked})
			text := ""
			for _, d := range m.Doubts {
				if d.Reason == PlanChanged {
					text = d.Message
				}
			}
			if !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("doubts %v, want %q", m.Doubts, c.want)
			}
		})
	}
}

// TestBaselineWithUnplannedSeconds: a stage without requests is the first half of the baseline. The baseline is that of
// the rest, and so are the dips.
func TestBaselineWithUnplannedSeconds(t *testing.T) {
	s := recorded.Load{
		Rate:   1000,
		Length: 90 * time.Second,
		Down:   []summary.Window{seconds(10, 25), seconds(40, 40.5)},
	}.Record(t)
	s.Finish(0)
	asked := plan.Planned{Rate: true, Mean: func(from, to time.Duration) float64 {
		idle := max(0, min(to, 25*time.Second)-max(from, 10*time.Second))
		return 1000 * (1 - idle.Seconds()/(to-from).Seconds())
	}}
	m := Analyze(s, Fault{At: 40 * time.Second}, Options{Planned: asked})
	if !near(m.BaselineRate, 1000, 1) || !near(m.Dips.All, 0.5, 0.01) || len(m.Operations) != 1 ||
		!near(m.Operations[0].Dip, 0.5, 0.01) {
		t.Errorf("baseline %.1f/s, dip %.3f, of operations %+v", m.BaselineRate, m.Dips.All, m.Operations)
	}
	if !m.Recovered || !near(m.RecoveryTime.Value.Seconds(), 0.5, 0.01) {
		t.Errorf("recovered %v after %v; doubts %v", m.Recovered, m.RecoveryTime, m.Doubts)
	}
}
