package impact

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// An outage that had begun before the fault is told however long before, also where it leaves no baseline: the longer it
// was, the less of what was lost is the fault's.
func TestDownBeforeHoweverLong(t *testing.T) {
	t.Parallel()
	const fault = 40 * time.Second
	for _, before := range []time.Duration{5, 14, 16, 18, 28, 35, 39} {
		for _, way := range []string{"failing", "silent"} {
			window := []summary.Window{{From: fault - before*time.Second, To: fault + 3*time.Second}}
			load := recorded.Load{Rate: 1000, Length: 2 * time.Minute, Failing: window}
			if way == "silent" {
				load.Failing, load.Down = nil, window
			}
			m := Analyze(load.Record(t), Fault{At: fault, Deadline: time.Minute}, Options{})
			if !tells(m) {
				t.Errorf("%s from %ds before the fault: %v", way, before, m.Doubts)
			}
		}
	}
	soon := recorded.Load{
		Rate: 1000, Length: time.Minute, Failing: []summary.Window{{From: 300 * time.Millisecond, To: 4 * time.Second}},
	}
	if m := Analyze(soon.Record(t), Fault{At: 800 * time.Millisecond, Deadline: 40 * time.Second}, Options{}); !tells(m) {
		t.Errorf("soon after the begin of the load: %v", m.Doubts)
	}
	none := recorded.Load{Rate: 1000, Length: time.Minute}
	if m := Analyze(none.Record(t), Fault{At: fault, Deadline: 10 * time.Second}, Options{}); tells(m) {
		t.Errorf("without an outage: %v", m.Doubts)
	}
}

func tells(m Impact) bool {
	return slices.ContainsFunc(m.Doubts, func(d Doubt) bool { return d.Reason == DownBefore || d.Reason == NoLoad })
}
