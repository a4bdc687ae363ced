package impact

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// everySecond are windows of one millisecond, 300 ms after the start of every second: one request each at 1,000/s.
func everySecond(to int) []summary.Window {
	var list []summary.Window
	for i := range to {
		at := time.Duration(i)*time.Second + 300*ms
		list = append(list, summary.Window{From: at, To: at + ms})
	}
	return list
}

// One error a second is usual. The fault at 40 s bites at 44 s, for a second.
func TestTruthUsualErrorsAreNoImpact(t *testing.T) {
	usual := everySecond(90)
	s := recorded.Load{
		Rate:    1000,
		Length:  90 * time.Second,
		Failing: append([]summary.Window{seconds(44.05, 45)}, usual...),
	}.Record(t)
	s.Finish(0)
	m := Analyze(s, Fault{At: 40 * time.Second, Deadline: 30 * time.Second}, Options{})
	truth.Report(t, "T16", "one error a second all along, a fault that bites after 4.05 s for 0.95 s",
		"impact after 4.05s, errors for 950ms",
		fmt.Sprintf("impact after %s, errors for %s", m.TimeToImpact.Value.Round(10*ms), m.ErrorWindow.Round(10*ms)),
		m.TimeToImpact.Value.Round(10*ms) == 4050*ms && m.ErrorWindow.Round(10*ms) == 950*ms && m.Recovered)

	s = recorded.Load{Rate: 1000, Length: 90 * time.Second, Failing: usual}.Record(t)
	s.Finish(0)
	m = Analyze(s, Fault{At: 40 * time.Second, Deadline: 30 * time.Second}, Options{})
	truth.Report(t, "T16", "one error a second all along, a harmless fault", "impact after -1ns, errors for 0s",
		fmt.Sprintf("impact after %s, errors for %s", m.TimeToImpact.Value, m.ErrorWindow),
		m.TimeToImpact.Value == -1 && m.ErrorWindow == 0)
}
