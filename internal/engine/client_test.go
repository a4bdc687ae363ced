package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestMaximumAge: each connection lives 180 to 200 ms of the run's second, and is replaced as soon as nothing is in
// flight.
func TestMaximumAge(t *testing.T) {
	virtually(t, time.Millisecond, func(t *testing.T, w *world) {
		p := bare()
		p.Client.MaxAge = 200 * time.Millisecond
		r := prepared(t, p, w.dialled())
		before := w.network.Dials(virtualAddress)
		_, wait := inBackground(t, t.Context(), r)
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		if o.sum.OK != o.sum.Sent || o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("%s", describe(o))
		}
		if made := w.network.Dials(virtualAddress) - before; made < 4*10 || made > 5*10 {
			t.Errorf("%d connections were made in a second for 10 with a maximum age of 200 ms", made)
		}
	})
}

// TestMultiplexed: fifty users on one connection do not wait for each other if the server needs no time.
func TestMultiplexed(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Mode, p.Client.Connections = plan.Multiplexed, 1
		p.Shape = plan.Shape{Users: 50, ThinkTime: 10 * time.Millisecond, Duration: time.Second}
		o := runPlan(t, p, w.dialled())
		if got := o.perInterval(0, 10, succeeded); !slices.Equal(got, repeated(500, 10)) ||
			w.network.Conns(virtualAddress) > 1 {
			t.Errorf("%d turns in each 0.1 s, want 500", got)
		}
	})
}

// TestAddedLatency: every round trip takes as much longer, in either mode.
func TestAddedLatency(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Dedicated, plan.Multiplexed} {
		t.Run(string(mode), func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := bare()
				p.Client.AddedLatency, p.Client.Mode = 20*time.Millisecond, mode
				o := runPlan(t, p, w.dialled())
				var want histogram.Histogram
				want.RecordN(int64(20*time.Millisecond), 500) // ten users for a second
				if expected := want.AppendTo(nil); !slices.Equal(o.sum.Latency, expected) || o.sum.OK != o.sum.Sent {
					t.Errorf("%s; want 500 of %s", describe(o), expected.Quantile(0.5))
				}
			})
		})
	}
}

// TestRetries: rejected requests are retried until the server has recovered; none fails.
func TestRetries(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Retries = 100
		p.Shape = plan.Shape{Rate: 500, Duration: 2 * time.Second}
		o := w.during(t, p, 500*time.Millisecond, func() {
			w.server.Kill()
			time.Sleep(200 * time.Millisecond)
			w.server.Restart()
		})
		addsUp(t, o)
		if o.sum.OK != 1000 || o.sum.Due != 1000 {
			t.Errorf("%s", describe(o))
		}
		if most := o.sum.Latency.Max(); most < 199*time.Millisecond ||
			most > 200*time.Millisecond+dial.BackoffLast+10*time.Millisecond {
			t.Errorf("the first arrival of the outage had success after %s", most)
		}
	})
}

// TestRequestsEndTheRun: exactly the planned number of requests is sent, in either loop, and the server executed each
// once.
func TestRequestsEndTheRun(t *testing.T) {
	for name, change := range map[string]func(*plan.Plan){
		"closed":    func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007} },
		"pipelined": func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007}; p.Client.Pipeline = 16 },
		"open":      func(p *plan.Plan) { p.Shape = plan.Shape{Rate: 20_000, Requests: 10_007} },
		"bounded":   func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007, Duration: time.Minute} },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				change(p)
				o := runPlan(t, p, w.dialled())
				if o.sum.OK != 10_007 || o.sum.Due != 10_007 {
					t.Errorf("%s", describe(o))
				}
				// The probe's commands are sets as well, and each command of the workload was tried once.
				if served, want := uint64(w.server.Calls("SET")+w.server.Calls("GET")), o.sum.Sent+o.probe.Sent+3; served != want {
					t.Errorf("the server counts %d commands, want %d", served, want)
				}
			})
		})
	}
}

// TestManyConnections: a pod with 2000 connections gives every user its turn. What they need of memory is in
// TestMemoryOfManyConnections.
func TestManyConnections(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Connections = 2000
		p.Shape = plan.Shape{Users: 2000, ThinkTime: 500 * time.Millisecond, RampUp: time.Second, Duration: time.Second}
		o := runPlan(t, p, w.dialled())
		if got := o.perInterval(10, 20, succeeded); !slices.Equal(got, repeated(400, 10)) {
			t.Errorf("%d turns in each 0.1 s, want 400", got)
		}
		if o.sum.OK != o.sum.Sent || o.intervals[15].Connections != 2000 {
			t.Errorf("%d connections, %s", o.intervals[15].Connections, describe(o))
		}
	})
}

// TestLedgerInVirtualTime: exactly the writes that the server lost in a restart without data are found, and none in a
// run without faults.
func TestLedgerInVirtualTime(t *testing.T) {
	for name, lost := range map[string]uint64{"clean": 0, "restarted": 500} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := bare()
				p.Shape = plan.Shape{Rate: 1000, Duration: 2 * time.Second}
				p.Verify = &plan.Verify{Share: 0.5}
				o, r := duringRun(t, p, time.Second, func() {
					if lost > 0 {
						w.server.Restart()
					}
				}, w.dialled())
				result, err := r.Verify(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if result.Acked != 1000 || result.Lost != lost || result.Failed+result.Unknown != 0 || o.sum.OK != 2000 {
					t.Errorf("%+v; %s", result, describe(o))
				}
			})
		})
	}
}

// Arrivals of ledger writes that the full book does not take are sent as ordinary requests.
func TestTruthAFullLedgerDropsNothing(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Shape = plan.Shape{Rate: 1000, Duration: time.Second}
		p.Verify = &plan.Verify{Share: 0.5}
		r := prepared(t, p, w.dialled())
		const left = 100
		for range 1<<26 - left { // what a book takes
			r.loops[0].Book.Next(0, 0)
		}
		_, wait := inBackground(t, t.Context(), r)
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		addsUp(t, o)
		truth.Report(t, "T13", "the ledger is full", "1000 ok, 0 dropped, 100 ledger writes",
			// one extends the bitmap
			fmt.Sprintf("%d ok, %d dropped, %d ledger writes", o.sum.OK, o.sum.Dropped, w.server.Calls("SETBIT")-1),
			o.sum.OK == 1000 && o.sum.Dropped == 0 && w.server.Calls("SETBIT") == left+1)
	})
}
