//go:build integration

package engine

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The tests on real servers do not check times: those with testing/synctest do (virtual_test.go and others). They check
// epoll, the kernel and Redis: presence, order and sums.

// patient is the timeout of a request and of a dial that no busy machine reaches.
const patient = 20 * time.Second

// realPlan is testPlan with timeouts that no busy machine reaches.
func realPlan(address string) *plan.Plan {
	p := testPlan(address)
	p.Client.RequestTimeout, p.Client.DialTimeout = patient, patient
	p.Shape.Duration = 500 * time.Millisecond
	return p
}

// watched is a run that a test ends as soon as the record contains what the test expects.
type watched struct {
	t         *testing.T
	runner    *Runner
	start     time.Time
	intervals chan record.Interval
	cancel    context.CancelFunc
	wait      func() (*outcome, error)
}

// watch prepares the plan and runs it for a minute at most.
func watch(t *testing.T, p *plan.Plan, options ...Option) *watched {
	t.Helper()
	p.Shape.Duration = time.Minute
	return watchPrepared(t, prepared(t, p, options...))
}

func watchPrepared(t *testing.T, r *Runner) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{t: t, runner: r, intervals: make(chan record.Interval, 1000), cancel: cancel}
	o, sink := collect(t)
	w.start = time.Now().Add(10 * time.Millisecond)
	done := make(chan error, 1)
	go func() {
		done <- w.runner.Run(ctx, w.start, func(iv *record.Interval) {
			sink(iv)
			w.intervals <- *iv
		})
		close(w.intervals)
	}()
	w.wait = func() (*outcome, error) { err := <-done; return o, err }
	t.Cleanup(func() {
		cancel()
		for range w.intervals {
		}
		w.runner.stopFollowing()
	})
	return w
}

// now returns the time since the start of the run.
func (w *watched) now() int64 { return int64(time.Since(w.start)) }

// until waits for an interval that began after now and satisfies ok, and returns its begin.
func (w *watched) until(what string, ok func(iv *record.Interval) bool) (began int64) {
	w.t.Helper()
	from := w.now()
	for iv := range w.intervals {
		if began = iv.Index * int64(w.runner.run.Plan.Interval); began >= from && ok(&iv) {
			return began
		}
	}
	w.t.Fatalf("the run has ended before this: %s", what)
	return 0
}

// end ends the run.
func (w *watched) end() *outcome {
	w.t.Helper()
	w.cancel()
	o, err := w.wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	w.t.Log(describe(o))
	return o
}

// serving reports whether requests succeed, and none fails.
func serving(iv *record.Interval) bool {
	var ok, not uint64
	for i := range iv.Ops {
		ok, not = ok+iv.Ops[i].OK, not+notDone(&iv.Ops[i].Counts)
	}
	return ok > 0 && not == 0
}

func TestClosedLoop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := watch(t, realPlan(server.Address()))
	readings := 0
	w.until("load and probe have success, and INFO was read", func(iv *record.Interval) bool {
		for _, s := range iv.Servers {
			if readings++; s.Version == "" || s.UsedMemory == 0 {
				t.Errorf("a reading of INFO is %+v", s)
			}
		}
		return readings > 1 && serving(iv) && iv.Probe.OK > 0 && iv.Connections == 10
	})
	o := w.end()
	addsUp(t, o)
	if o.sum.Fail > 0 || o.probe.Fail > 0 {
		t.Errorf("%s", describe(o))
	}
}

func TestOpenLoop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := realPlan(server.Address())
	p.Shape = plan.Shape{Rate: 2000, Duration: time.Second}
	if o := runPlan(t, p); o.sum.Due != 2000 || o.sum.OK != 2000 {
		t.Errorf("want all of 2000 ok: %s", describe(o))
	}
}

// TestStoppedServer: arrivals queue while the process does not run, and are all served afterwards; their latency counts
// from when they were due.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := realPlan(server.Address())
	p.Shape = plan.Shape{Rate: 1000, Duration: 2 * time.Second}
	var to time.Time
	o, r := duringRun(t, p, 300*time.Millisecond, func() {
		server.Stop()
		await.Pass(time.Second, "the length of the outage")
		to = time.Now()
		server.Cont()
	})
	addsUp(t, o)
	if o.sum.OK != 2000 {
		t.Errorf("%d of 2000 ok: the queue was not processed", o.sum.OK)
	}
	// Replies from before the stop may be read late; requests due during the stop are answered after its end.
	if most := o.sum.Latency.Max(); most < 900*time.Millisecond {
		t.Errorf("no request waited longer than %s", most)
	}
	end := r.run.At(to)
	covers(t, "load", o.gaps, end-int64(200*time.Millisecond), end)
	covers(t, "probe", o.probeGaps, end-int64(200*time.Millisecond), end)
}

// covers checks that a gap without successes covers from..to.
func covers(t *testing.T, whose string, gaps []record.Gap, from, to int64) {
	t.Helper()
	for _, g := range gaps {
		if g.From <= from && g.To >= to {
			return
		}
	}
	t.Errorf("%s: no gap covers the outage from %s to %s: %v", whose, time.Duration(from), time.Duration(to), gaps)
}

// TestKilledServer: what was in flight is lost, dials are refused, and requests succeed again after the restart.
func TestKilledServer(t *testing.T) {
	for name, shape := range map[string]plan.Shape{"closed": {Users: 10}, "open": {Rate: 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := realPlan(server.Address())
			p.Shape = shape
			w := watch(t, p)
			w.until("the load runs", serving)
			// A server that is killed between its replies and the next requests loses none: it is killed while
			// requests wait.
			server.Stop()
			w.until("requests wait", func(iv *record.Interval) bool { return iv.FirstOK < 0 })
			server.Kill()
			down := w.until("dials are refused", func(iv *record.Interval) bool {
				return sampleErrors(iv, record.ClassRefused) > 0 && iv.FirstOK < 0
			})
			server.Restart()
			w.until("all is well again", func(iv *record.Interval) bool { return serving(iv) && iv.Connections == 10 })
			o := w.end()
			covers(t, "load", o.gaps, down, down+int64(p.Interval))
			covers(t, "probe", o.probeGaps, down, down+int64(p.Interval))
			if name == "closed" {
				addsUp(t, o)
				if lost := o.sum.Errors[record.ClassReset]; lost < 1 || lost > 10 {
					t.Errorf("%d requests were lost on broken connections, want 1 to 10", lost)
				}
			}
		})
	}
}

func sampleErrors(iv *record.Interval, class record.Class) (n uint64) {
	for i := range iv.Ops {
		n += iv.Ops[i].Errors[class]
	}
	return n
}

// TestDeadAddress: the server dies and its name resolves to an address that drops SYNs; then to another server. Dials
// that hang for 20 s do not extend the outage.
func TestDeadAddress(t *testing.T) {
	t.Parallel()
	first, second, hole := redistest.Start(t), redistest.Start(t), redistest.BlackHole(t)
	var place atomic.Value
	place.Store(first.Address())
	p := realPlan(first.Address())
	p.Shape, p.Info = plan.Shape{Rate: 500}, 0
	p.Client.RequestTimeout = 2 * time.Second
	follows := func(r *Runner) {
		r.run.Routes.Dialer.TCP = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, place.Load().(string))
		}
	}
	w := watch(t, p, follows)
	w.until("the load runs", serving)
	place.Store(hole)
	first.Kill()
	down := w.until("no request succeeds", func(iv *record.Interval) bool { return iv.FirstOK < 0 && iv.Probe.OK == 0 })
	before := w.now()
	place.Store(second.Address())
	w.until("requests succeed at the other server", func(iv *record.Interval) bool {
		return iv.FirstOK >= 0 &&
			iv.Probe.OK > 0
	})
	if took := time.Duration(w.now() - before); took >= patient-5*time.Second {
		t.Errorf("first success %s after the change of the address: it waited for hanging dials", took)
	}
	o := w.end()
	covers(t, "load", o.gaps, down, down+int64(p.Interval))
	covers(t, "probe", o.probeGaps, down, down+int64(p.Interval))
}
