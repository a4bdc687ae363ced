package impact_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// stop is a time in which the server does not run, in milliseconds from the injection; before it, a hiccup of the
// baseline.
type stop struct{ from, to int }

const (
	sceneBefore = 15 * time.Second // load before the injection
	sceneAfter  = 13 * time.Second // and after the last stop
)

// scene stops a server, as a suspended process, while an open loop of 1000 requests/s is on it: requests hang and are
// answered when it goes on.
func scene(t *testing.T, stops []stop) impact.Impact {
	const address = "redis:6379"
	network := memnet.New()
	server := memredis.Start(t, network, address, memredis.Options{})
	last := time.Duration(stops[len(stops)-1].to) * time.Millisecond
	p := &plan.Plan{
		Run: "truth", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: 20, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3},
		Shape:  plan.Shape{Rate: 1000, Duration: sceneBefore + last + sceneAfter},
		Workload: plan.Workload{
			Commands: []plan.Command{
				{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}},
			},
			Keyspace: plan.Keyspace{Prefix: "truth:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}},
	}
	runner, err := engine.New(p, 0, engine.WithDialer(network.Dial))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := runner.Prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(50 * time.Millisecond)
	s := merged.New(p.Run, start, p.Interval, p.Operations(), 1)
	s.SetReadOnly(p.ReadOnly())
	ended := make(chan error, 1)
	go func() {
		ended <- runner.Run(ctx, start, func(iv *record.Interval) {
			if err := s.Add(0, iv); err != nil {
				t.Error(err)
			}
		})
	}()
	injected := start.Add(sceneBefore)
	for _, one := range stops {
		time.Sleep(time.Until(injected.Add(time.Duration(one.from) * time.Millisecond)))
		server.Stop()
		time.Sleep(time.Until(injected.Add(time.Duration(one.to) * time.Millisecond)))
		server.Continue()
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.Finish(0)
	return impact.Analyze(s, impact.Fault{At: sceneBefore, Deadline: time.Minute}, impact.Options{})
}

func holds(b durations.Bounded, d time.Duration) bool {
	const spacing = 5 * time.Millisecond // between requests, also of the probe
	return b.AtLeast <= d+spacing && d <= b.AtMost+spacing && b.Value >= d-spacing && b.Value <= d+2*spacing
}

// An outage is seen however late after the injection it begins, and although the requests behind it make up for it
// within the second. Several are several.
func TestTruthLateOutages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                     string
		stops                    []stop
		outage, recovery, impact int
	}{
		{"soon, short", []stop{{20, 110}}, 90, 110, 20},
		{"late, 150 ms", []stop{{1350, 1500}}, 150, 1500, 1350},
		{"late, 500 ms", []stop{{1350, 1850}}, 500, 1850, 1350},
		{"late, 900 ms", []stop{{1200, 2100}}, 900, 2100, 1200},
		{"8 s late, 300 ms", []stop{{8000, 8300}}, 300, 8300, 8000},
		{"two, the later is longer", []stop{{0, 300}, {1500, 1900}}, 400, 1900, 0},
		{"two, 8 s apart", []stop{{0, 100}, {8000, 8900}}, 900, 8900, 0},
		{"three", []stop{{0, 60}, {3000, 3850}, {6000, 6200}}, 850, 6200, 0},
		{
			"flapping",
			[]stop{{0, 300}, {600, 900}, {1200, 1500}, {1800, 2100}, {2400, 2700}, {3000, 3300}, {3600, 3900}},
			300,
			3900,
			0,
		},
		{"short, after a hiccup of 200 ms in the baseline", []stop{{-8200, -8000}, {1350, 2050}}, 700, 2050, 1350},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := scene(t, c.stops)
				ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
				truth.Report(t, "V1", fmt.Sprintf("Redis stopped at %v ms from the injection: outage, recovery, impact", c.stops),
					fmt.Sprint(ms(c.outage), ms(c.recovery), ms(c.impact)),
					fmt.Sprintf("%v, %v, %v, doubts %v", m.Outage, m.RecoveryTime, m.TimeToImpact, m.Doubts),
					holds(m.Outage.Bounded, ms(c.outage)) && holds(m.RecoveryTime, ms(c.recovery)) &&
						holds(m.TimeToImpact, ms(c.impact)) && holds(m.Outages.Probe, ms(c.outage)))
			})
		})
	}
}

// After a hiccup in the baseline, a shorter outage is one: it is not worse than what happens without a fault, so that
// the load may count as recovered before it.
func TestTruthShorterThanWithoutAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hiccup, stop stop
	}{
		{stop{-8095, -8000}, stop{20, 110}},
		{stop{-8095, -8000}, stop{300, 360}},
		{stop{-8095, -8000}, stop{5000, 5090}},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := scene(t, []stop{c.hiccup, c.stop})
				length, end := time.Duration(c.stop.to-c.stop.from)*time.Millisecond, time.Duration(c.stop.to)*time.Millisecond
				truth.Report(t, "V3",
					fmt.Sprintf("Redis stopped for 95 ms 8 s before the injection, then at %v ms: outage, recovery", c.stop),
					fmt.Sprint(length, ", 0 or ", end),
					fmt.Sprintf("%v, %v, doubts %v", m.Outage, m.RecoveryTime, m.Doubts),
					holds(m.Outage.Bounded, length) && holds(m.Outages.Probe, length) && m.Recovered &&
						m.RecoveryTime.AtMost >= end-time.Millisecond)
			})
		})
	}
}
