package engine

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// onlyGap returns the only gap; it is an error if there is not exactly one.
func onlyGap(t *testing.T, whose string, gaps []record.Gap) record.Gap {
	t.Helper()
	if len(gaps) != 1 {
		t.Errorf("%s: gaps %v, want one", whose, gaps)
		return record.Gap{}
	}
	return gaps[0]
}

func wantGap(t *testing.T, whose string, gaps []record.Gap, from, to time.Duration) {
	t.Helper()
	if g := onlyGap(t, whose, gaps); g.From != int64(from) || g.To != int64(to) || g.Open || g.AtLeast(0) == 0 {
		t.Errorf("%s: the gap is %s to %s, want %s to %s; %s of it are proven", whose, time.Duration(g.From),
			time.Duration(g.To), from, to,
			time.Duration(g.AtLeast(0)))
	}
}

// TestOpenLoopSeesAStoppedServer: a stop of 300 ms does not delay the schedule: arrivals queue, and their latency
// counts from their due time.
func TestOpenLoopSeesAStoppedServer(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 2000, Duration: 2 * time.Second}
		p.Info = 0
		o := w.during(t, p, time.Second, func() {
			w.server.Stop()
			time.Sleep(300 * time.Millisecond)
			w.server.Continue()
		})
		addsUp(t, o)
		if o.sum.OK != 4000 {
			t.Errorf("%d of 4000 ok: the queue was not processed", o.sum.OK)
		}
		// The 600 arrivals during the stop waited 0.25 to 299.75 ms, 15 % of all, all others not at all.
		var want histogram.Histogram
		want.RecordN(0, 3400)
		for i := range 600 {
			want.Record(int64(250*time.Microsecond) + int64(i)*int64(500*time.Microsecond))
		}
		if expected := want.AppendTo(nil); !slices.Equal(o.sum.Latency, expected) {
			t.Errorf("%s; want p99 %s, max %s", describe(o), expected.Quantile(0.99), expected.Max())
		}
		// Only the ten requests that were in flight on a connection waited for the server.
		if p99 := o.sum.Service.Quantile(0.99); p99 > time.Microsecond {
			t.Errorf("p99 of the service time is %s", p99)
		}
		wantGap(t, "load", o.gaps, 999_750*time.Microsecond, 1300*time.Millisecond)
		wantGap(t, "probe", o.probeGaps, 995*time.Millisecond, 1300*time.Millisecond)
	})
}

// TestKilledServerComesBack: requests in flight are lost, arrivals during the outage are refused or wait, and every
// connection is re-established within one backoff.
func TestKilledServerComesBack(t *testing.T) {
	const killed, back = time.Second, 1500 * time.Millisecond
	for name, tt := range map[string]struct {
		shape plan.Shape
		lost  uint64        // in flight at the kill
		last  time.Duration // success before the kill
	}{
		"closed": {plan.Shape{Users: 10, Duration: 3 * time.Second}, 10, 999_900 * time.Microsecond},
		"open":   {plan.Shape{Rate: 1000, Duration: 3 * time.Second}, 0, 999_800 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 300*time.Microsecond, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				p.Shape, p.Info = tt.shape, 0
				o := w.during(t, p, killed, func() {
					w.server.Kill()
					time.Sleep(back - killed)
					w.server.Restart()
				})
				addsUp(t, o)
				if o.sum.Unknown != tt.lost || o.sum.Errors[record.ClassReset] != tt.lost {
					t.Errorf("%d unknown, %d of them reset, want %d: %s", o.sum.Unknown, o.sum.Errors[record.ClassReset], tt.lost,
						describe(o))
				}
				if o.sum.Errors[record.ClassRefused] < 10 {
					t.Errorf("only %d attempts were refused", o.sum.Errors[record.ClassRefused])
				}
				g := onlyGap(t, "load", o.gaps)
				if from, to := time.Duration(g.From),
					time.Duration(g.To); from != tt.last || to <= back || to > back+dial.BackoffLast {
					t.Errorf("the gap is %s to %s", from, to)
				}
				// Every arrival of the probe dials: 1.505 s is the first at which the server listens.
				g = onlyGap(t, "probe", o.probeGaps)
				if from, to := time.Duration(g.From),
					time.Duration(g.To); from < 995*time.Millisecond || from > 1000*time.Millisecond || to < 1505*time.Millisecond ||
					to > 1510*time.Millisecond {
					t.Errorf("the probe's gap is %s to %s", from, to)
				}
				for _, iv := range o.intervals[17:29] {
					if iv.Connections != 10 {
						t.Errorf("interval %d: %d connections, want 10", iv.Index, iv.Connections)
					}
				}
				first := slices.IndexFunc(o.intervals, func(iv record.Interval) bool { return iv.FirstError >= 0 })
				if at := time.Duration(o.intervals[first].FirstError); at < killed || at > killed+2*time.Millisecond {
					t.Errorf("the first error is at %s", at)
				}
			})
		})
	}
}

// TestRequestTimeout: a server that stops for longer than the request timeout makes requests unknown, never ok; dials
// whose connection is accepted end after dialTimeout.
func TestRequestTimeout(t *testing.T) {
	virtually(t, time.Millisecond, func(t *testing.T, w *world) {
		p := bare()
		p.Client.RequestTimeout, p.Client.DialTimeout = 200*time.Millisecond, 200*time.Millisecond
		p.Shape.Duration = 2 * time.Second
		o := w.during(t, p, 500_500*time.Microsecond, func() {
			w.server.Stop()
			time.Sleep(700 * time.Millisecond)
			w.server.Continue()
		})
		addsUp(t, o)
		if o.sum.Errors[record.ClassTimeout] != 10 || o.sum.Unknown != 10 {
			t.Errorf("want 10 timeouts, one per connection: %s", describe(o))
		}
		// Abandoned at 0.7 s, dialled until 0.9 and 1.1 s, and a third time until the server continues.
		if o.sum.Errors[record.ClassRefused] != 20 {
			t.Errorf("want two dials that end for each connection: %s", describe(o))
		}
		if most := o.sum.Latency.Max(); most > 200*time.Millisecond {
			t.Errorf("a success took %s", most)
		}
		// They are checked every 10 ms.
		if waited := o.sum.Waited.Max(); waited < 200*time.Millisecond || waited > 211*time.Millisecond {
			t.Errorf("the requests that timed out waited up to %s", waited)
		}
		// The server continues at 1.2005 s. It then processes nine other requests and twenty greetings whose clients have
		// timed out, ten new greetings, and a request, 1 ms each.
		wantGap(t, "load", o.gaps, 500*time.Millisecond, 1240_500*time.Microsecond)
	})
}

// TestDropsFallInTheirInterval: with the server's address removed, arrivals are dropped one by one as they time out,
// not all at once.
func TestDropsFallInTheirInterval(t *testing.T) {
	dropped := func(c *record.Counts) uint64 { return c.Dropped }
	plan := func() *plan.Plan {
		p := bare()
		p.Client.RequestTimeout = 200 * time.Millisecond
		p.Shape = plan.Shape{Rate: 2000, Duration: 1500 * time.Millisecond}
		return p
	}
	t.Run("swallowed", func(t *testing.T) {
		virtually(t, 0, func(t *testing.T, w *world) {
			o := w.during(t, plan(), 500*time.Millisecond, func() {
				w.network.Set(virtualAddress, memnet.Swallow)
				w.network.Cut(virtualAddress)
			})
			addsUp(t, o)
			// What was due in 0.5 to 0.6 s is dropped in 0.7 to 0.8 s. What is dropped after the end is recorded in the last
			// interval.
			want := append(slices.Concat(repeated(0, 7), repeated(200, 7)), 600)
			if got := o.perInterval(0, 15, dropped); !slices.Equal(got, want) {
				t.Errorf("%d arrivals were dropped in each 0.1 s, want %d", got, want)
			}
			if g := onlyGap(t, "load", o.gaps); !g.Open || g.From != int64(499_750*time.Microsecond) ||
				g.To != int64(1500*time.Millisecond) {
				t.Errorf("the gap is %+v, want it open from 499.75 ms to the end", g)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		virtually(t, 0, func(t *testing.T, w *world) {
			o := w.during(t, plan(), 500*time.Millisecond, w.server.Kill)
			addsUp(t, o)
			if o.sum.OK != 1000 || o.sum.Fail+o.sum.Dropped != 2000 || o.sum.Fail != o.sum.Errors[record.ClassRefused] ||
				o.sum.Unknown != 0 {
				t.Errorf("%s", describe(o))
			}
			// An attempt that is refused fails the oldest arrival, up to 200 ms before it would be dropped and, as they are
			// checked every 10 ms, up to 10 ms after.
			var dropped, due uint64
			for i, n := range o.perInterval(0, 14, notDone) {
				if dropped, due = dropped+n, uint64(max(0, i-4))*200; dropped > due || dropped+420 < due {
					t.Errorf("until the end of interval %d %d arrivals are dropped of %d", i, dropped, due)
				}
			}
		})
	})
}

// TestHangingDialsAreHedged: the first attempts go to an address that swallows SYNs; a later one finds the server while
// they still hang.
func TestHangingDialsAreHedged(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		const hole = "10.0.0.9:6379"
		w.network.Set(hole, memnet.Swallow)
		began := time.Now()
		d := &dial.Dialer{
			Target:   plan.Target{Addresses: []string{"any:6379"}},
			Timeout:  5 * time.Second,
			Protocol: 3,
			Hedges:   make(chan struct{}, 10),
		}
		// the name resolves to another address, as a Service gets a new endpoint
		d.TCP = func(ctx context.Context, network, _ string) (net.Conn, error) {
			address := hole
			if time.Since(began) >= 250*time.Millisecond {
				address = virtualAddress
			}
			return w.network.Dial(ctx, network, address)
		}
		c, err := d.Connect(t.Context(), func(err error, _ time.Time) { t.Errorf("an attempt failed: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if took := time.Since(began); took < 250*time.Millisecond || took > 250*time.Millisecond+dial.HedgeAfter*3/2 {
			t.Errorf("the connection was established after %s", took)
		}
		if n := w.network.Dials(hole); n < 2 || n > 5 { // every 50 to 150 ms
			t.Errorf("%d dials hang", n)
		}
	})
}

// TestDeadAddressDoesNotExtendTheOutage: the server is killed and its name resolves to a black hole for 400 ms, as a
// Service does until its endpoints change; then to another server. Load and probe recover immediately, although their
// dials may hang for 5 s.
func TestDeadAddressDoesNotExtendTheOutage(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		const hole, second = "10.0.0.9:6379", "10.0.0.2:6379"
		w.network.Set(hole, memnet.Swallow)
		memredis.Start(t, w.network, second, memredis.Options{})
		var place atomic.Value
		place.Store(virtualAddress)
		p := testPlan("any:6379")
		p.Client.DialTimeout = 5 * time.Second
		p.Shape = plan.Shape{Rate: 1000, Duration: 2500 * time.Millisecond}
		p.Info = 0
		o, _ := duringRun(t, p, time.Second, func() {
			place.Store(hole)
			w.server.Kill()
			time.Sleep(400 * time.Millisecond)
			place.Store(second)
		}, WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return w.network.Dial(ctx, network, place.Load().(string))
		}))
		addsUp(t, o)
		if g := onlyGap(t, "load", o.gaps); g.From != int64(999_500*time.Microsecond) ||
			g.To < int64(1400*time.Millisecond) || g.To > int64(1400*time.Millisecond+dial.HedgeAfter*3/2) {
			t.Errorf("the load's gap is %s to %s", time.Duration(g.From), time.Duration(g.To))
		} else if proven := time.Duration(g.AtLeast(0)); proven < 390*time.Millisecond ||
			proven > time.Duration(g.To-g.From) {
			t.Errorf("%s of the gap are proven: requests waited for dials all the time", proven)
		}
		// its first arrival after the name's change
		wantGap(t, "probe", o.probeGaps, 995*time.Millisecond, 1405*time.Millisecond)
	})
}

// TestLoadingAndReadOnly: replies that refuse a request are failures of their kind, and no success.
func TestLoadingAndReadOnly(t *testing.T) {
	for class, set := range map[record.Class]func(*memredis.Server, bool){
		record.ClassLoading: (*memredis.Server).SetLoading, record.ClassReadOnly: (*memredis.Server).SetReadOnly,
	} {
		t.Run(class.String(), func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				p.Workload.Commands = p.Workload.Commands[:1]
				p.Shape, p.Info = plan.Shape{Rate: 1000, Duration: 2 * time.Second}, 0
				o := w.during(t, p, 500*time.Millisecond, func() {
					set(w.server, true)
					time.Sleep(time.Second)
					set(w.server, false)
				})
				addsUp(t, o)
				if o.sum.Errors[class] != 1000 || o.sum.Fail != 1000 || o.sum.OK != 1000 || o.probe.Errors[class] != 100 ||
					o.probe.OK != 100 {
					t.Errorf("%s", describe(o))
				}
				wantGap(t, "load", o.gaps, 499_500*time.Microsecond, 1500_500*time.Microsecond)
				wantGap(t, "probe", o.probeGaps, 495*time.Millisecond, 1505*time.Millisecond)
			})
		})
	}
}

// TestGapOfErrorReplies: replies that are errors from the first to the last are one gap over the whole run.
func TestGapOfErrorReplies(t *testing.T) {
	for _, pipeline := range []int{1, 16} {
		t.Run(fmt.Sprintf("pipeline %d", pipeline), func(t *testing.T) {
			virtually(t, time.Millisecond, func(t *testing.T, w *world) {
				w.server.Answer("GET", "-WRONGTYPE Operation against a key holding the wrong kind of value")
				p := bare()
				p.Workload.Commands = p.Workload.Commands[1:]
				p.Client.Pipeline, p.Shape.Duration = pipeline, 500*time.Millisecond
				o := runPlan(t, p, w.dialled())
				if o.sum.OK != 0 || o.sum.Fail != o.sum.Sent || o.sum.Errors[record.ClassOther] != o.sum.Fail || o.sum.Fail < 500 {
					t.Errorf("%s", describe(o))
				}
				if g := onlyGap(t, "load", o.gaps); !g.Open || g.From != 0 || g.To != int64(500*time.Millisecond) ||
					o.intervals[2].FirstOK != -1 {
					t.Errorf("the gap is %+v, want it over the whole run", g)
				}
			})
		})
	}
}

// TestProbeOfAServerThatHangsForLong: beyond the requestTimeout the probe has no connection left, and its dials wait
// for a server that has accepted them.
// All that time is proven.
func TestProbeOfAServerThatHangsForLong(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(w.server.Address())
		p.Client.RequestTimeout, p.Client.DialTimeout, p.Shape = time.Second, time.Second, plan.Shape{
			Rate:     100,
			Duration: 8 * time.Second,
		}
		o := w.during(t, p, time.Second, func() {
			w.server.Stop()
			time.Sleep(5 * time.Second)
			w.server.Continue()
		})
		addsUp(t, o)
		const down = 5 * time.Second
		if g := onlyGap(t, "probe", o.probeGaps); time.Duration(g.AtMost()) < down ||
			time.Duration(g.AtLeast(0)) < down-30*time.Millisecond || time.Duration(g.AtLeast(0)) > down {
			t.Errorf("the gap of %v was at least %v and at most %v, the truth is %v", time.Duration(g.To-g.From),
				time.Duration(g.AtLeast(0)), time.Duration(g.AtMost()), down)
		}
	})
}

// TestProbeInFlightAtTheEnd: the probe's requests in flight at the end of the load are awaited, like those of the load,
// and are not errors.
func TestProbeInFlightAtTheEnd(t *testing.T) {
	// a queue of ten at the server, so that the probe waits for 30 ms
	virtually(t, 3*time.Millisecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape, p.Info = plan.Shape{Users: 10, Requests: 100}, 0
		o := runPlan(t, p, w.dialled())
		if o.sum.OK != 100 || o.probe.OK != o.probe.Sent || o.probe.Sent == 0 ||
			o.probe.Fail+o.probe.Unknown+o.probe.Dropped > 0 {
			t.Errorf("%s", describe(o))
		}
	})
}
