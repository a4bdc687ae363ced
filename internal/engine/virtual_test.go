package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// virtualAddress is the address of Redis in tests in virtual time. It is no name, because go-redis would resolve it.
const virtualAddress = "10.0.0.1:6379"

// world replaces sockets and processes in tests in virtual time. Only commands, at their cost, and waiting take time,
// so that figures are exact.
// A closed loop without think time needs a cost, or virtual time does not advance.
type world struct {
	network *memnet.Network
	server  *memredis.Server
}

// virtually runs f in virtual time, with a Redis at virtualAddress whose commands take cost each.
func virtually(t *testing.T, cost time.Duration, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		f(t, &world{network, memredis.Start(t, network, virtualAddress, memredis.Options{Cost: cost})})
	})
}

// dialled is the option that makes the load's connections in the world.
func (w *world) dialled() Option { return WithDialer(w.network.Dial) }

// during runs the plan, and calls what at the instant after the start.
func (w *world) during(t *testing.T, p *plan.Plan, after time.Duration, what func()) *outcome {
	t.Helper()
	o, _ := duringRun(t, p, after, what, w.dialled())
	return o
}

// bare is testPlan without a probe and an observer.
func bare() *plan.Plan {
	p := testPlan(virtualAddress)
	p.Probe, p.Info = plan.Probe{}, 0
	return p
}

func repeated(n uint64, times int) []uint64 { return slices.Repeat([]uint64{n}, times) }

// TestClosedLoopInVirtualTime: ten users, and a server that performs a command in 1 ms: each waits for the nine before
// it.
func TestClosedLoopInVirtualTime(t *testing.T) {
	virtually(t, time.Millisecond, func(t *testing.T, w *world) {
		p := bare()
		o := runPlan(t, p, w.dialled())
		// The first interval has the first ten replies after 1 to 10 ms; requests that are under way at the end are waited
		// for, and recorded in the last interval.
		want := append(repeated(100, 9), 110)
		want[0] = 99 // the reply at 100 ms sharp belongs to the next interval
		if got := o.perInterval(0, 10, succeeded); !slices.Equal(got, want) {
			t.Errorf("%d requests ended in each 0.1 s, want %d", got, want)
		}
		addsUp(t, o)
		if p50 := o.sum.Latency.Quantile(0.5).Round(100 * time.Microsecond); p50 != 10*time.Millisecond {
			t.Errorf("the median latency is %s, want 10 ms", p50)
		}
	})
}

// TestOpenLoopRate: every arrival of the schedule is sent at its instant.
func TestOpenLoopRate(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 5000, Duration: 2 * time.Second}
		o := runPlan(t, p, w.dialled())
		if got := o.perInterval(0, 20, succeeded); !slices.Equal(got, repeated(500, 20)) {
			t.Errorf("%d requests ended in each 0.1 s, want 500", got)
		}
		if o.maxLag > 1 || o.sum.Latency.Max() > 30*time.Microsecond { // beside the probe and the observer
			t.Errorf("%s", describe(o))
		}
		if o.probe.OK != 200 || len(o.gaps)+len(o.probeGaps) > 0 {
			t.Errorf("the probe: %s", describe(o))
		}
	})
}

// Of a server that replies at once there are four to twenty readings in a second, if its period is 200 ms: it pauses for
// 50 to 250 ms.
const fewestReadings, mostReadings = 4, 20

// TestObserverReadings: INFO about once per period, the slow log's new entries and the server's own figures with it.
func TestObserverReadings(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 100, Duration: time.Second}
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{
			Name:   "slow",
			Weight: 1,
			Words:  []string{"DEBUG", "SLEEP", "0.02"},
		})
		o := runPlan(t, p, w.dialled())
		const period, queries = 200 * time.Millisecond, 300 * time.Millisecond // each waits for a slow command, at most
		if len(o.servers) < 2 {
			t.Fatalf("%d readings in 1 s", len(o.servers))
		}
		for i, s := range o.servers {
			if i > 0 {
				after := time.Duration(s.At - o.servers[i-1].At)
				if after < period/4 || after > 5*period/4+queries {
					t.Errorf("reading %d comes %s after the one before", i, after)
				}
			}
			if s.Version != memredis.Version || s.Role != "master" || s.UsedMemory == 0 || s.Address != virtualAddress ||
				i > 0 && (len(s.SlowLog.Commands) != 1 || s.SlowLog.Commands[0].Command != "DEBUG" ||
					s.SlowLog.Commands[0].WorstMicros != 20_010) {
				t.Errorf("reading %d: %+v", i, s)
			}
		}
	})
}

// TestObserverReadingsAreComplete: a connection that breaks before the slow log was read makes no reading, as one
// without the slow log's total would make the next one count its commands again.
func TestObserverReadingsAreComplete(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 100, Duration: 2 * time.Second}
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{
			Name:   "slow",
			Weight: 1,
			Words:  []string{"DEBUG", "SLEEP", "0.02"},
		})
		var asked atomic.Int64
		o := runPlan(t, p, WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := w.network.Dial(ctx, network, address)
			return brokenConn{c, func(b []byte) bool { return bytes.Contains(b, []byte("SLOWLOG")) && asked.Add(1) == 4 }}, err
		}))
		if asked.Load() < 5 {
			t.Fatalf("the slow log was read %d times", asked.Load())
		}
		for i, s := range o.servers {
			if i > 0 && s.SlowLog.Total < o.servers[i-1].SlowLog.Total {
				t.Errorf("reading %d counts %d slow commands, that before %d", i, s.SlowLog.Total, o.servers[i-1].SlowLog.Total)
			}
		}
	})
}

// denied is the reply to a command that the user may not run.
const denied = "-NOPERM this user has no permissions to run the 'x' command"

// TestObserverWithoutInfo: a user that may not run INFO leaves the round trips, and why there are no readings.
func TestObserverWithoutInfo(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		w.server.Answer("INFO", denied)
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 100, Duration: time.Second}
		r := prepared(t, p, w.dialled())
		o, sink := collect(t)
		if err := r.Run(t.Context(), time.Now().Add(20*time.Millisecond),
			r.Watch(func() record.AgentUse { return record.AgentUse{} }, sink)); err != nil {
			t.Fatal(err)
		}
		var trips int
		var learned []record.Unobserved
		for i := range o.intervals {
			if use := o.intervals[i].Agents; len(use) == 1 && use[0].RoundTrip >= int64(10*time.Microsecond) &&
				use[0].IdleRoundTrip >= int64(10*time.Microsecond) {
				trips++
			}
			learned = append(learned, o.intervals[i].Unobserved...)
		}
		if want := []record.Unobserved{
			{Address: virtualAddress, Reason: "INFO: " + denied[1:]},
		}; !slices.Equal(learned, want) || len(o.servers) > 0 {
			t.Errorf("%+v, %d readings; want %+v", learned, len(o.servers), want)
		}
		if trips < fewestReadings || trips > mostReadings {
			t.Errorf("%d round trips in 1 s, want %d to %d", trips, fewestReadings, mostReadings)
		}
	})
}

// TestObserverWithoutSlowLog: the number of slow commands is unknown, and not 0.
func TestObserverWithoutSlowLog(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		w.server.Answer("SLOWLOG", denied)
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 100, Duration: time.Second}
		o := runPlan(t, p, w.dialled())
		if n := len(o.servers); n < fewestReadings || n > mostReadings ||
			slices.ContainsFunc(o.servers, func(s record.Server) bool { return s.SlowLog.Total != -1 }) {
			t.Errorf("%+v, want %d to %d readings without a total of the slow log", o.servers, fewestReadings, mostReadings)
		}
	})
}

// TestObserverReadsAfterAll: a server that loads its data at first is not one that cannot be read.
func TestObserverReadsAfterAll(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Shape = plan.Shape{Rate: 100, Duration: 2 * time.Second}
		w.server.Answer("INFO", "-LOADING Redis is loading the dataset in memory")
		o := w.during(t, p, time.Second, func() { w.server.Answer("INFO", "") })
		var learned []record.Unobserved
		for i := range o.intervals {
			learned = append(learned, o.intervals[i].Unobserved...)
		}
		if n := len(learned); n != 2 || learned[0].Reason == "" ||
			learned[1] != (record.Unobserved{Address: learned[0].Address}) || len(o.servers) == 0 {
			t.Errorf("%+v, and %d readings", learned, len(o.servers))
		}
	})
}

// brokenConn breaks at the first write for which at returns true.
type brokenConn struct {
	net.Conn
	at func([]byte) bool
}

func (c brokenConn) Write(b []byte) (int, error) {
	if c.at(b) {
		_ = c.Close()
	}
	return c.Conn.Write(b)
}

// TestObserverEndsWithTheRun: an observer that waits for a reply stops when the run ends; none of its goroutines
// outlives Run.
func TestObserverEndsWithTheRun(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := bare()
		p.Info, p.Client.RequestTimeout = 100*time.Millisecond, 5*time.Second
		p.Shape = plan.Shape{Rate: 100, Duration: 10 * time.Second}
		var open atomic.Int64
		ctx, abort := context.WithCancel(t.Context())
		defer abort()
		start, wait := inBackground(t, ctx,
			prepared(t, p, WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := w.network.Dial(ctx, network, address)
				if err == nil {
					open.Add(1)
					c = &closeCounted{Conn: c, open: &open}
				}
				return c, err
			})))
		time.Sleep(time.Until(start.Add(150 * time.Millisecond)))
		w.server.Stop()
		time.Sleep(250 * time.Millisecond)
		abort()
		o, _ := wait()
		if open.Load() != 0 || o.elapsed > 500*time.Millisecond {
			t.Errorf("%d connections are open when Run has returned, %s after the start", open.Load(), o.elapsed)
		}
	})
}

// TestIncompleteReadingIsDiscarded: the run ends between INFO and the commands after it.
func TestIncompleteReadingIsDiscarded(t *testing.T) {
	const cost = 20 * time.Millisecond
	virtually(t, cost, func(t *testing.T, w *world) {
		p := bare()
		p.Info, p.Shape = time.Minute, plan.Shape{Rate: 1, Duration: 10 * time.Second}
		ctx, abort := context.WithCancel(t.Context())
		defer abort()
		r := prepared(t, p, w.dialled())
		before := w.server.Calls("INFO")
		_, wait := inBackground(t, ctx, r)
		for range 1000 {
			if w.server.Calls("INFO") > before {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if w.server.Calls("INFO") == before {
			t.Fatal("the observer sent no command")
		}
		time.Sleep(cost + cost/4)
		abort()
		if o, _ := wait(); len(o.servers) != 0 {
			t.Errorf("%d readings: %+v", len(o.servers), o.servers)
		}
	})
}

// closeCounted decrements open when it is closed.
type closeCounted struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *closeCounted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// TestThinkTimeAndRamp: 100 users on 4 connections, each with a turn every 100 ms, of whom one after the other begins
// while they ramp up.
func TestThinkTimeAndRamp(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Client.Connections = 4
		p.Shape = plan.Shape{Users: 100, ThinkTime: 100 * time.Millisecond, RampUp: time.Second, Duration: time.Second}
		o := runPlan(t, p, w.dialled())
		want := append([]uint64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, repeated(100, 10)...)
		if got := o.perInterval(0, 20, succeeded); !slices.Equal(got, want) {
			t.Errorf("%d turns in each 0.1 s, want %d", got, want)
		}
	})
}

// TestStagesOfUsers: users stop when a stage ends with fewer of them.
func TestStagesOfUsers(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Shape = plan.Shape{ThinkTime: 20 * time.Millisecond, Stages: []plan.Stage{
			{Duration: 300 * time.Millisecond, Users: 40},
			{Duration: 500 * time.Millisecond, Users: 40},
			{Duration: 200 * time.Millisecond, Users: 4},
			{Duration: 500 * time.Millisecond, Users: 4},
		}}
		o := runPlan(t, p, w.dialled())
		if got := o.perInterval(3, 8, succeeded); !slices.Equal(got, repeated(200, 5)) {
			t.Errorf("%d turns of 40 users in each 0.1 s, want 200", got)
		}
		if got := o.perInterval(10, 15, succeeded); !slices.Equal(got, repeated(20, 5)) {
			t.Errorf("%d turns of 4 users in each 0.1 s, want 20", got)
		}
	})
}

// TestEveryIntervalIsDelivered: also when the last request is long before the end.
func TestEveryIntervalIsDelivered(t *testing.T) {
	for name, shape := range map[string]plan.Shape{
		"slow": {Rate: 1, Duration: 1100 * time.Millisecond},
		"falls silent": {
			Stages: []plan.Stage{{Duration: 300 * time.Millisecond, Rate: 100}, {Duration: 800 * time.Millisecond}},
		},
		"users leave": {
			ThinkTime: 10 * time.Millisecond,
			Stages: []plan.Stage{
				{Duration: 300 * time.Millisecond, Users: 5},
				{Duration: 100 * time.Millisecond},
				{Duration: 700 * time.Millisecond},
			},
		},
		"odd length": {Rate: 1000, Duration: 1050 * time.Millisecond},
		"many requests": {
			Users:     10,
			ThinkTime: 100 * time.Millisecond,
			Requests:  1_000_000,
			Duration:  1100 * time.Millisecond,
		},
		"more arrivals": {Rate: 100, Requests: 1_000_000, Duration: 1100 * time.Millisecond},
	} {
		for _, probe := range []plan.Probe{{}, testPlan("").Probe} {
			t.Run(fmt.Sprintf("%s, probe %.0f", name, probe.Rate), func(t *testing.T) {
				virtually(t, 0, func(t *testing.T, w *world) {
					p := bare()
					p.Shape, p.Probe = shape, probe
					o := runPlan(t, p, w.dialled())
					length := shape.Length()
					if len(o.intervals) != 11 || o.sum.OK == 0 || o.sum.OK != o.sum.Due ||
						o.probe.OK != uint64(probe.Rate*length.Seconds()+0.5) {
						t.Errorf("%d intervals, want 11: %s", len(o.intervals), describe(o))
					}
				})
			})
		}
	}
}

// TestPodWithoutUsers: a pod without users still records and probes.
func TestPodWithoutUsers(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Pods, p.Shape.Users = 2, 1
		r, err := New(p, 1, w.dialled())
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
		// it shares the probe with the other pod
		if len(o.intervals) != 10 || o.sum.Sent != 0 || o.probe.OK != 50 || len(o.gaps) != 1 {
			t.Errorf("a pod without users: %d intervals, %s", len(o.intervals), describe(o))
		}
	})
}

// TestAbort: the end of the context ends the run at once, with the open interval delivered.
func TestAbort(t *testing.T) {
	for name, shape := range map[string]plan.Shape{
		"users":    {Users: 10, Duration: time.Minute},
		"thinking": {Users: 10, ThinkTime: 10 * time.Second, Duration: time.Minute},
		"rate":     {Rate: 1, Duration: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, time.Millisecond, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				p.Shape = shape
				r := prepared(t, p, w.dialled())
				ctx, cancel := context.WithCancel(t.Context())
				start, wait := inBackground(t, ctx, r)
				time.Sleep(time.Until(start.Add(350 * time.Millisecond)))
				cancel()
				o, err := wait()
				if !errors.Is(err, context.Canceled) || o.elapsed > 350*time.Millisecond+100*time.Millisecond ||
					len(o.intervals) != 4 {
					t.Errorf("error %v after %s with %d intervals", err, o.elapsed, len(o.intervals))
				}
				if o.sum.Fail+o.sum.Unknown > 0 {
					t.Errorf("the abort shows as errors: %s", describe(o))
				}
			})
		})
	}
}
