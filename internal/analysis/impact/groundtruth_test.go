package impact_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

const (
	loadBefore = 1500 * time.Millisecond // load before the outage
	loadAfter  = 1500 * time.Millisecond // and after it
)

// way is how clients lose their server.
type way int

const (
	held    way = iota // connections stay open, no data passes
	stopped            // connections stay open, new ones are accepted, the process is stopped
	refused            // connections end, new ones are refused
)

// outageCase is an outage of known length: the time from the return of the breaking call to the instant just before the
// restoring call. The measured outage runs from the last success before to the first after, so it is longer by up to
// one time between successes and one round trip.
//
// Requests do not time out within the outage, so that connections stay open unless the fault closes them, except in the
// marked cases: there every connection is dialled again while the server does not answer, and must recover as fast.
type outageCase struct {
	name   string
	way    way
	shape  plan.Shape
	length time.Duration
	expire bool // requests time out within the outage
}

var (
	openLoop   = plan.Shape{Rate: 2000}
	closedLoop = plan.Shape{Users: 4} // few enough that two processors are not saturated

	outageCases = []outageCase{
		{"held, open loop, 50 ms", held, openLoop, 50 * time.Millisecond, false},
		{"held, open loop, 500 ms", held, openLoop, 500 * time.Millisecond, false},
		{"held, open loop, 3 s", held, openLoop, 3 * time.Second, false},
		{"stopped, open loop, 50 ms", stopped, openLoop, 50 * time.Millisecond, false},
		{"stopped, open loop, 500 ms", stopped, openLoop, 500 * time.Millisecond, false},
		{"stopped, open loop, 3 s", stopped, openLoop, 3 * time.Second, false},
		{"held, requests time out, 3 s", held, openLoop, 3 * time.Second, true},
		{"stopped, requests time out, 3 s", stopped, openLoop, 3 * time.Second, true},
		{"refused, open loop, 500 ms", refused, openLoop, 500 * time.Millisecond, false},
		{"refused, open loop, 3 s", refused, openLoop, 3 * time.Second, false},
		{"held, closed loop, 50 ms", held, closedLoop, 50 * time.Millisecond, false},
		{"held, closed loop, 500 ms", held, closedLoop, 500 * time.Millisecond, false},
		{"stopped, closed loop, 50 ms", stopped, closedLoop, 50 * time.Millisecond, false},
		{"stopped, closed loop, 500 ms", stopped, closedLoop, 500 * time.Millisecond, false},
	}
)

// plan is the load of a case.
func (c outageCase) plan(address string) *plan.Plan {
	shape := c.shape
	shape.Duration = loadBefore + c.length + loadAfter
	timeout := c.length + 2*time.Second
	if c.expire {
		timeout = 800 * time.Millisecond // no multiple of it is the length: dials are in progress when the server recovers
	}
	plan := &plan.Plan{
		Run: "truth", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: 20, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: timeout, Protocol: 3},
		Shape:  shape,
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "truth:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}},
	}
	if c.way == refused {
		// Refused connections retry independently, every 25 to 50 ms: one of 100 is back within 5 ms, except in one of a
		// thousand runs.
		plan.Client.Connections = 100
	}
	return plan
}

// run runs the load of a case, breaks the server with cut after loadBefore, restores it with restore after the length,
// and analyzes the record. called, broken and restored are the instants before cut, after it and before restore.
func (c outageCase) run(
	t *testing.T, runner *engine.Runner, plan *plan.Plan, cut, restore func(),
) (i impact.Impact, called, broken, restored time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := runner.Prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(50 * time.Millisecond)
	s := merged.New(plan.Run, start, plan.Interval, plan.Operations(), 1)
	ended := make(chan error, 1)
	go func() {
		ended <- runner.Run(ctx, start, func(iv *record.Interval) {
			if err := s.Add(0, iv); err != nil {
				t.Error(err)
			}
		})
	}()
	time.Sleep(time.Until(start.Add(loadBefore)))
	called = time.Now()
	cut()
	broken = time.Now()
	time.Sleep(time.Until(broken.Add(c.length)))
	restored = time.Now()
	restore()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.Finish(0)
	i = impact.Analyze(s, impact.Fault{At: called.Sub(start)}, impact.Options{
		BaselineMinimum: time.Second,
		SustainFor:      time.Second,
	})
	return i, called, broken, restored
}

// commandCost is the time of a command in the closed loop: the time between successes.
const commandCost = 500 * time.Microsecond

// span is from the shortest to the longest time that something may take.
type span struct{ least, most time.Duration }

func (s span) check(t *testing.T, what string, got time.Duration) {
	t.Helper()
	if got < s.least || got > s.most {
		t.Errorf("%s is %v, want %v to %v", what, got, s.least, s.most)
	}
}

// bounds are what the load's schedule allows for the outages that the load and the probe measure. In the open loop 2000
// requests/s are due at 0.25 ms, 0.75 ms and so on and are answered at once: the last success is that of 1499.75 ms,
// and queued requests are answered at the instant at which the server recovers. The same holds for the probe, whose 100
// requests/s are due at 5 ms, 15 ms and so on.
func (c outageCase) bounds() (load, probe span) {
	const last, lastOfProbe = 250 * time.Microsecond, 5 * time.Millisecond
	exact := func(d time.Duration) span { return span{d, d} }
	switch {
	case c.way == refused:
		// 100 connections recover independently after 0 to 50 ms: the first one later than this in one of 10^12 cases. The
		// probe dials when it is due.
		return span{c.length + last, c.length + last + 10*time.Millisecond}, exact(c.length + 2*lastOfProbe)
	case c.shape.OpenLoop():
		return exact(c.length + last), exact(c.length + lastOfProbe)
	}
	// Four users and the probe take turns at the server; after its recovery so do the eight connections that the probe may
	// have dialled meanwhile.
	const before, after = 5 * commandCost, (5 + 8) * commandCost
	probe = span{c.length + lastOfProbe - before, c.length + lastOfProbe + after}
	if c.way == held {
		return span{c.length, c.length + commandCost}, probe // replies are in flight when the server recovers
	}
	return span{c.length, c.length + 2*commandCost}, probe
}

// TestGroundTruth has the real load engine measure outages of known length, in virtual time: exact. `make accuracy`
// measures the same cases on this machine.
func TestGroundTruth(t *testing.T) {
	t.Parallel()
	for _, c := range outageCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, c.inVirtualTime)
		})
	}
}

func (c outageCase) inVirtualTime(t *testing.T) {
	const address = "redis:6379"
	network := memnet.New()
	var options memredis.Options
	if !c.shape.OpenLoop() {
		options.Cost = commandCost // otherwise a closed loop would send endlessly in one instant
	}
	server := memredis.Start(t, network, address, options)
	cut, restore := server.Stop, server.Continue
	switch c.way {
	case held:
		cut, restore = func() { network.Set(address, memnet.Hold) }, func() { network.Set(address, memnet.Pass) }
	case refused:
		cut = func() { network.Set(address, memnet.Refuse); network.Cut(address) }
		restore = func() { network.Set(address, memnet.Pass) }
	case stopped:
	}
	plan := c.plan(address)
	runner, err := engine.New(plan, 0, engine.WithDialer(network.Dial))
	if err != nil {
		t.Fatal(err)
	}
	got, _, broken, restored := c.run(t, runner, plan, cut, restore)
	if known := restored.Sub(broken); known != c.length {
		t.Fatalf("the outage was %v, want %v", known, c.length)
	}
	outage, probed := c.bounds()
	outage.check(t, "the outage", got.Outage.Value)
	probed.check(t, "the outage by the probe", got.Outages.Probe.Value)
	span{c.length, outage.most}.check(t, "the recovery", got.RecoveryTime.Value)
}
