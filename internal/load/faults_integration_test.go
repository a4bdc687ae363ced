//go:build integration

package load

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
)

// addsUp checks that every request ended in one way: in an open loop each that was due, in a closed loop each that was sent.
func addsUp(t *testing.T, o *outcome) {
	t.Helper()
	ended := o.sum.OK + o.sum.Fail + o.sum.Unknown + o.sum.Dropped
	if len(o.sum.Service) == 0 {
		ended -= o.sum.Errors[sample.ClassRefused] // closed loop: never sent, so never due
	}
	if o.sum.Due != ended {
		t.Errorf("requests are lost: %s", describe(o))
	}
	var classes uint64
	for _, n := range o.sum.Errors {
		classes += n
	}
	if classes != o.sum.Fail+o.sum.Unknown {
		t.Errorf("the classes do not add up: %s", describe(o))
	}
}

// TestOpenLoopSeesAStoppedServer: SIGSTOP for 300 ms stops no arrival; they queue, and their latency counts from when they were due.
func TestOpenLoopSeesAStoppedServer(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Shape = plan.Shape{Rate: 2000, Duration: 2 * time.Second}
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(time.Second)))
	server.signal(syscall.SIGSTOP)
	stopped := time.Now()
	time.Sleep(300 * time.Millisecond)
	server.signal(syscall.SIGCONT)
	pause := time.Since(stopped)
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	addsUp(t, o)
	if o.sum.OK != 4000 {
		t.Errorf("%d of 4000 ok: the queue was not worked off", o.sum.OK)
	}
	// Arrivals during the pause waited 0 to 300 ms: 15 % of all, so the 99th percentile is at 280 ms; service time shows 10 requests only.
	if p99 := o.sum.Latency.Quantile(0.99); p99 < 250*time.Millisecond || p99 > 400*time.Millisecond+o.late {
		t.Errorf("p99 of the response time is %s, want about 280 ms", p99)
	}
	if p99 := o.sum.Service.Quantile(0.99); p99 > 150*time.Millisecond+o.late {
		t.Errorf("p99 of the service time is %s, want far below the pause", p99)
	}
	checkGap(t, o.gaps, at(start, stopped), pause, o.late)
	checkGap(t, o.probeGaps, at(start, stopped), pause, o.late)
}

func at(start, t time.Time) int64 { return int64(t.Sub(start)) }

// checkGap looks for one gap that began around from and was about as long as d; 50 ms, and what timers were late, are granted.
func checkGap(t *testing.T, gaps []sample.Gap, from int64, d, late time.Duration) {
	t.Helper()
	grant := 50*time.Millisecond + late
	for _, g := range gaps {
		long := time.Duration(g.To - g.From)
		if g.From > from-int64(grant) && g.From < from+int64(grant) && long > d-15*time.Millisecond-late && long < d+grant {
			return
		}
	}
	t.Errorf("no gap of about %s from %s in %v", d, time.Duration(from), gaps)
}

func TestKilledServerComesBack(t *testing.T) {
	for _, mode := range []string{"closed", "open"} {
		t.Run(mode, func(t *testing.T) {
			server := startRedis(t)
			p := testPlan(server.address())
			p.Shape = plan.Shape{Users: 10, Duration: 3 * time.Second}
			if mode == "open" {
				p.Shape = plan.Shape{Rate: 1000, Duration: 3 * time.Second}
			}
			r := prepared(t, p)
			start, wait := inBackground(t, t.Context(), r)
			time.Sleep(time.Until(start.Add(time.Second)))
			killed := time.Now()
			server.kill()
			time.Sleep(500 * time.Millisecond)
			server.launch()
			back := server.serves()
			o, err := wait()
			if err != nil {
				t.Fatal(err)
			}
			t.Log(describe(o))
			addsUp(t, o)
			if n := o.sum.Errors[sample.ClassReset]; n < 1 || n > 20 {
				t.Errorf("%d requests were lost on broken connections, want 1 to 20: one per connection", n)
			}
			if o.sum.Unknown != o.sum.Errors[sample.ClassReset] {
				t.Errorf("%d unknown, %d of them reset", o.sum.Unknown, o.sum.Errors[sample.ClassReset])
			}
			if o.sum.Errors[sample.ClassRefused] < 10 {
				t.Errorf("only %d attempts were refused", o.sum.Errors[sample.ClassRefused])
			}
			outage := back.Sub(killed)
			for name, gaps := range map[string][]sample.Gap{"load": o.gaps, "probe": o.probeGaps} {
				g := longest(gaps)
				late := time.Duration(g.To - at(start, back))
				if late > 150*time.Millisecond+o.late || time.Duration(g.To-g.From) < outage-20*time.Millisecond-o.late {
					t.Errorf("%s: the gap is %s for an outage of %s; the first success came %s after the return", name, time.Duration(g.To-g.From), outage, late)
				}
				t.Logf("%s: first success %s after the server's return", name, late)
			}
			last := o.intervals[len(o.intervals)-1]
			if last.Connections != 10 && o.intervals[len(o.intervals)-2].Connections != 10 {
				t.Errorf("%d connections at the end, want 10", last.Connections)
			}
			first := o.intervals[10]
			for _, iv := range o.intervals[9:13] {
				if iv.FirstError >= 0 {
					first = iv
					break
				}
			}
			if d := time.Duration(first.FirstError - at(start, killed)); d < -time.Millisecond || d > 50*time.Millisecond+o.late {
				t.Errorf("the first error is %s after the kill", d)
			}
		})
	}
}

func longest(gaps []sample.Gap) sample.Gap {
	var most sample.Gap
	for _, g := range gaps {
		if g.To-g.From > most.To-most.From {
			most = g
		}
	}
	return most
}

// serves waits until the server answers PING and returns that instant.
func (r *redisProcess) serves() time.Time {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		c, err := net.Dial("tcp", r.address())
		if err == nil {
			v, err := ask(c, time.Second, []byte("PING\r\n"))
			_ = c.Close()
			if err == nil && !v.IsError() {
				return time.Now()
			}
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatal("the server does not come back")
	return time.Time{}
}

// TestRequestTimeout: a server that stops for longer than the request timeout makes requests unknown, never ok.
func TestRequestTimeout(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Client.RequestTimeout = 200 * time.Millisecond
	p.Client.DialTimeout = 200 * time.Millisecond
	p.Shape.Duration = 2 * time.Second
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(500 * time.Millisecond)))
	server.signal(syscall.SIGSTOP)
	time.Sleep(700 * time.Millisecond)
	server.signal(syscall.SIGCONT)
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	addsUp(t, o)
	if n := o.sum.Errors[sample.ClassTimeout]; n != 10 || o.sum.Unknown != 10 {
		t.Errorf("%d timeouts, want 10: one per connection", n)
	}
	if o.sum.Errors[sample.ClassRefused] == 0 || o.sum.Latency.Max() > 210*time.Millisecond+o.late {
		t.Errorf("want hanging dials to fail, and no success over the timeout: %s", describe(o))
	}
	if w := o.sum.Waited.Max(); w < 200*time.Millisecond || w > 300*time.Millisecond+o.late {
		t.Errorf("the timed out requests waited up to %s", w)
	}
}

// TestDropsFallInTheirInterval: with the server gone, arrivals are dropped one by one as they become too late, not in a lump.
func TestDropsFallInTheirInterval(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Client.RequestTimeout = 200 * time.Millisecond
	p.Shape = plan.Shape{Rate: 2000, Duration: 1500 * time.Millisecond}
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(500 * time.Millisecond)))
	server.kill()
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	addsUp(t, o)
	for _, iv := range o.intervals[8:14] {
		var lost uint64
		for i := range iv.Ops {
			lost += iv.Ops[i].Dropped + iv.Ops[i].Fail
		}
		if late := uint64(o.late.Seconds() * 2000); lost+late < 180 || lost > 320+late { // 200 arrivals per interval, dropped as they expire or failed as attempts do
			t.Errorf("interval %d: %d arrivals dropped or failed, want about 200", iv.Index, lost)
		}
	}
	if g := o.gaps[len(o.gaps)-1]; !g.Open || g.To != int64(1500*time.Millisecond) {
		t.Errorf("the last gap is %+v, want it open until the end", g)
	}
}

// TestAbort: the end of the context ends the run at once, with the open interval delivered.
func TestAbort(t *testing.T) {
	server := startRedis(t)
	for _, shape := range []plan.Shape{{Users: 10, Duration: time.Minute}, {Users: 10, ThinkTime: 10 * time.Second, Duration: time.Minute}, {Rate: 1, Duration: time.Minute}} {
		p := testPlan(server.address())
		p.Shape = shape
		r := prepared(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		start, wait := inBackground(t, ctx, r)
		time.Sleep(time.Until(start.Add(350 * time.Millisecond)))
		cancel()
		o, err := wait()
		if !errors.Is(err, context.Canceled) || o.elapsed > 700*time.Millisecond+o.late || len(o.intervals) < 4 || len(o.intervals) > 6+int(o.late/p.Interval) {
			t.Errorf("%+v: error %v after %s with %d intervals", shape, err, o.elapsed, len(o.intervals))
		}
		if o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("the abort shows as errors: %s", describe(o))
		}
	}
}

// blackHole is a listener whose backlog is full: the kernel drops further SYNs, as the address of a dead pod does.
func blackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the backlog does not fill up")
	return ""
}

// TestHangingDialsAreHedged: the first attempts go to an address that swallows SYNs; a later one finds the server while they still hang.
func TestHangingDialsAreHedged(t *testing.T) {
	server := startRedis(t)
	hole := blackHole(t)
	moved := time.Now().Add(250 * time.Millisecond)
	d := &dialer{target: plan.Target{Addresses: []string{"redis:6379"}}, timeout: 5 * time.Second, protocol: 3, hedges: make(chan struct{}, 10)}
	d.tcp = func(ctx context.Context, network, _ string) (net.Conn, error) { // the name gets a new meaning, as a Service gets a new endpoint
		address := hole
		if time.Now().After(moved) {
			address = server.address()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	began, stop := time.Now(), watchTimer()
	c, err := d.connect(t.Context(), func(err error, _ time.Time) { t.Errorf("an attempt failed: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if took, late := time.Since(began), stop(); took < 250*time.Millisecond || took > 450*time.Millisecond+late {
		t.Errorf("the connection stood after %s, want 250 to 450 ms while dials hang for 5 s; timers were late by up to %s", took, late)
	}
}

// TestDeadAddressPutsNoFloorUnderTheOutage: the server dies and its name leads into a black hole for 400 ms, as a Service's does until its
// endpoints change; then to another server. Load and probe are back at once, though their dials may hang for 5 s.
func TestDeadAddressPutsNoFloorUnderTheOutage(t *testing.T) {
	first, second, hole := startRedis(t), startRedis(t), blackHole(t)
	var place atomic.Value
	place.Store(first.address())
	p := testPlan(first.address())
	p.Client.DialTimeout = 5 * time.Second
	p.Shape = plan.Shape{Rate: 1000, Duration: 2500 * time.Millisecond}
	p.Info = 0
	r := prepared(t, p)
	r.run.dialer.tcp = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, place.Load().(string))
	}
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(time.Second)))
	place.Store(hole)
	first.kill()
	time.Sleep(400 * time.Millisecond)
	back := time.Now()
	place.Store(second.address())
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	addsUp(t, o)
	for name, most := range map[string]time.Duration{"load": 150 * time.Millisecond, "probe": 30 * time.Millisecond} {
		gaps := o.gaps
		if name == "probe" {
			gaps = o.probeGaps
		}
		g := longest(gaps)
		late := time.Duration(g.To - at(start, back))
		t.Logf("%s: first success %s after the name led to the new server", name, late)
		if late < 0 || late > most+o.late || time.Duration(g.To-g.From) < 390*time.Millisecond {
			t.Errorf("%s: the gap %+v ended %s after the return, want at most %s", name, g, late, most)
		}
	}
}

func wantReason(t *testing.T, p *plan.Plan, reason plan.Reason, words string, options ...Option) {
	t.Helper()
	r, err := New(p, 0, options...)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Prepare(t.Context(), nil)
	e, ok := errors.AsType[*plan.Error](err)
	if !ok || e.Reason != reason || !strings.Contains(e.Message, words) {
		t.Errorf("want %s with %q, have %v", reason, words, err)
		return
	}
	t.Log(err)
}
