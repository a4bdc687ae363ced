//go:build integration

package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

func TestClosedLoop(t *testing.T) {
	server := startRedis(t)
	o := runPlan(t, testPlan(server.address()))
	t.Log(describe(o))
	if len(o.intervals) != 10 {
		t.Errorf("%d intervals, want 10", len(o.intervals))
	}
	if o.sum.OK < 1000 || o.sum.OK != o.sum.Sent || o.sum.Due != o.sum.Sent || o.sum.Fail+o.sum.Unknown+o.sum.Dropped > 0 {
		t.Errorf("want all of over 1000 requests ok: %s", describe(o))
	}
	if o.probe.OK != 100 || o.probe.Due != 100 {
		t.Errorf("the probe has %d of %d ok, want 100 of 100", o.probe.OK, o.probe.Due)
	}
	if len(o.servers) < 4 || o.servers[0].Version == "" || o.servers[0].UsedMemory == 0 {
		t.Errorf("want at least 4 readings of INFO, have %+v", o.servers)
	}
}

func TestOpenLoopRate(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Shape = plan.Shape{Rate: 5000, Duration: 2 * time.Second}
	o := runPlan(t, p)
	t.Log(describe(o))
	if o.sum.Due != 10000 {
		t.Errorf("%d were due, want 10000", o.sum.Due)
	}
	if o.sum.OK < 9900 || o.sum.OK+o.sum.Fail+o.sum.Unknown+o.sum.Dropped != o.sum.Due {
		t.Errorf("want 9900 and more of 10000 ok, none lost: %s", describe(o))
	}
}

// TestThinkTimeAndRamp: 100 users on 4 connections, each with a turn every 100 ms, and half as many on average while they ramp up.
func TestThinkTimeAndRamp(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Client.Connections = 4
	p.Shape = plan.Shape{Users: 100, ThinkTime: 100 * time.Millisecond, RampUp: time.Second, Duration: time.Second}
	o := runPlan(t, p)
	t.Log(describe(o))
	ramp, steady := o.rate(0, 10, p.Interval), o.rate(10, 20, p.Interval)
	stood := 1000 * o.late.Seconds() // what a second of a thousand turns loses where the machine stands still
	if steady < 850-stood || steady > 1005 || ramp < 425-stood || ramp > 600 {
		t.Errorf("%.0f/s in the ramp, %.0f/s after it; want about 550 and 1000", ramp, steady)
	}
	if first, last := o.rate(0, 3, p.Interval), o.rate(7, 10, p.Interval); first*2 > last {
		t.Errorf("the ramp goes from %.0f/s to %.0f/s", first, last)
	}
}

// TestStagesOfUsers: users leave when a stage takes them away.
func TestStagesOfUsers(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Shape = plan.Shape{ThinkTime: 20 * time.Millisecond, Stages: []plan.Stage{
		{Duration: 300 * time.Millisecond, Users: 40}, {Duration: 500 * time.Millisecond, Users: 40},
		{Duration: 200 * time.Millisecond, Users: 4}, {Duration: 500 * time.Millisecond, Users: 4},
	}}
	o := runPlan(t, p)
	high, low := o.rate(4, 8, p.Interval), o.rate(11, 15, p.Interval)
	// What a busy machine takes away it takes from both, and more from the many.
	if high > 2010 || low > 205 || high < 3*low || low < 50 {
		t.Errorf("%.0f/s with 40 users, %.0f/s with 4; want about 1900 and 190", high, low)
	}
}

// TestEveryIntervalComes: also when the last request is long before the end.
func TestEveryIntervalComes(t *testing.T) {
	server := startRedis(t)
	for name, shape := range map[string]plan.Shape{
		"slow":          {Rate: 1, Duration: 1100 * time.Millisecond},
		"falls silent":  {Stages: []plan.Stage{{Duration: 300 * time.Millisecond, Rate: 100}, {Duration: 800 * time.Millisecond}}},
		"users leave":   {Stages: []plan.Stage{{Duration: 300 * time.Millisecond, Users: 5}, {Duration: 100 * time.Millisecond}, {Duration: 700 * time.Millisecond}}},
		"odd length":    {Rate: 1000, Duration: 1050 * time.Millisecond},
		"many requests": {Users: 10, ThinkTime: 100 * time.Millisecond, Requests: 1_000_000, Duration: 1100 * time.Millisecond},
		"more arrivals": {Rate: 100, Requests: 1_000_000, Duration: 1100 * time.Millisecond},
	} {
		for _, probe := range []plan.Probe{{}, testPlan("").Probe} {
			t.Run(fmt.Sprintf("%s, probe %.0f", name, probe.Rate), func(t *testing.T) {
				t.Parallel() // they mostly wait
				p := testPlan(server.address())
				p.Shape, p.Probe = shape, probe
				o := runPlan(t, p)
				if len(o.intervals) != 11 || o.sum.OK == 0 || o.sum.OK != o.sum.Due || o.probe.OK < uint64(probe.Rate/2) {
					t.Errorf("%d intervals, want 11: %s", len(o.intervals), describe(o))
				}
			})
		}
	}
}

// TestPodWithoutUsers: a pod that has nothing to do still records, and probes.
func TestPodWithoutUsers(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Pods, p.Shape.Users = 2, 1
	r, err := New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o, sink := collect(t)
	if err := r.Run(t.Context(), time.Now(), sink); err != nil {
		t.Fatal(err)
	}
	if len(o.intervals) != 10 || o.sum.Sent != 0 || o.probe.OK != 100 || len(o.gaps) != 1 {
		t.Errorf("a pod without users: %d intervals, %s", len(o.intervals), describe(o))
	}
}
