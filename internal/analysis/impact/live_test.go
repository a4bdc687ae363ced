package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// The figures of a fault that is not over grow with the record, and do not end with a recovery.
func TestLive(t *testing.T) {
	down := summary.Window{From: 40 * time.Second, To: 43 * time.Second}
	failing := summary.Window{From: 60 * time.Second, To: 60*time.Second + 500*ms}
	run := recorded.Load{
		Rate:    200,
		Length:  70 * time.Second,
		Down:    []summary.Window{down},
		Failing: []summary.Window{failing},
	}
	until := func(end time.Duration) Live {
		part := run
		part.Length = end
		s := part.Record(t)
		return LiveOf(s, Fault{At: 40 * time.Second}, Options{})
	}
	if l := until(42 * time.Second); l.Outage < 1900*ms || l.Outage > 2100*ms || l.ErrorRate != 0 ||
		l.End != 42*time.Second {
		t.Errorf("after 2 s of an outage without replies: %+v", l)
	}
	if l := until(58 * time.Second); l.Outage < 2900*ms || l.Outage > 3100*ms || l.ErrorRate != 0 {
		t.Errorf("after the outage: %+v", l)
	}
	if l := until(70 * time.Second); !near(l.ErrorRate, 0.5, 0.02) || l.Outage < 2900*ms {
		t.Errorf("half of the requests of a second failed, long after the recovery: %+v", l)
	}
	before := recorded.Load{
		Rate:    200,
		Length:  50 * time.Second,
		Failing: []summary.Window{{From: 20 * time.Second, To: 21 * time.Second}},
		Down:    []summary.Window{{From: 20 * time.Second, To: 22 * time.Second}},
	}
	if l := LiveOf(before.Record(t), Fault{At: 40 * time.Second}, Options{}); l.Outage != 0 || l.ErrorRate != 0 {
		t.Errorf("what was before the fault counts: %+v", l)
	}
}

// Before an injection only the end of the record counts.
func TestLately(t *testing.T) {
	run := recorded.Load{
		Rate:    200,
		Length:  30 * time.Second,
		Failing: []summary.Window{{From: 10 * time.Second, To: 12 * time.Second}},
	}
	if l := Lately(run.Record(t)); l.Outage != 0 || l.ErrorRate != 0 {
		t.Errorf("a load that serves: %+v", l)
	}
	run.Failing = []summary.Window{{From: 28 * time.Second, To: 30 * time.Second}}
	if l := Lately(run.Record(t)); l.ErrorRate != 1 || l.Outage < 1900*ms || l.Outage > 2100*ms {
		t.Errorf("a load whose requests have failed for 2 s: %+v", l)
	}
	if l := Lately(recorded.Load{Rate: 200, Length: 500 * ms}.Record(t)); l.ErrorRate != 0 {
		t.Errorf("half a second: %+v", l)
	}
}
