package impact

import (
	"testing"
	"time"
)

// The figures of a fault that is not over grow with the record, and do not end with a recovery.
func TestLive(t *testing.T) {
	down, failing := Window{40 * time.Second, 43 * time.Second}, Window{60 * time.Second, 60*time.Second + 500*ms}
	run := load{rate: 200, length: 70 * time.Second, down: []Window{down}, failing: []Window{failing}}
	until := func(end time.Duration) Live {
		part := run
		part.length = end
		s := part.record(t)
		return LiveOf(s, Fault{At: 40 * time.Second}, Options{})
	}
	if l := until(42 * time.Second); l.Outage < 1900*ms || l.Outage > 2100*ms || l.ErrorRate != 0 || l.End != 42*time.Second {
		t.Errorf("after 2 s of an outage without replies: %+v", l)
	}
	if l := until(58 * time.Second); l.Outage < 2900*ms || l.Outage > 3100*ms || l.ErrorRate != 0 {
		t.Errorf("after the outage: %+v", l)
	}
	if l := until(70 * time.Second); !near(l.ErrorRate, 0.5, 0.02) || l.Outage < 2900*ms {
		t.Errorf("half of the requests of a second failed, long after the recovery: %+v", l)
	}
	before := load{rate: 200, length: 50 * time.Second, failing: []Window{{20 * time.Second, 21 * time.Second}}, down: []Window{{20 * time.Second, 22 * time.Second}}}
	if l := LiveOf(before.record(t), Fault{At: 40 * time.Second}, Options{}); l.Outage != 0 || l.ErrorRate != 0 {
		t.Errorf("what was before the fault counts: %+v", l)
	}
}

// Before an injection only the end of the record counts.
func TestLately(t *testing.T) {
	run := load{rate: 200, length: 30 * time.Second, failing: []Window{{10 * time.Second, 12 * time.Second}}}
	if l := Lately(run.record(t)); l.Outage != 0 || l.ErrorRate != 0 {
		t.Errorf("a load that serves: %+v", l)
	}
	run.failing = []Window{{28 * time.Second, 30 * time.Second}}
	if l := Lately(run.record(t)); l.ErrorRate != 1 || l.Outage < 1900*ms || l.Outage > 2100*ms {
		t.Errorf("a load whose requests have failed for 2 s: %+v", l)
	}
	if l := Lately(load{rate: 200, length: 500 * ms}.record(t)); l.ErrorRate != 0 {
		t.Errorf("half a second: %+v", l)
	}
}
