//go:build integration

package impact_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redquake/redquake/internal/impact"
	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
)

const (
	truthBefore = 1500 * time.Millisecond // load before the outage
	truthAfter  = 1500 * time.Millisecond // and after it
	truthMargin = 5 * time.Millisecond    // what a measured outage may be off by, beside one time between successes
	// More, where every connection has to be made anew: a server that goes on works first through the connections that were given up on
	// meanwhile, on the processors that it shares with the load here.
	truthRemade = 15 * time.Millisecond
	repeats     = 3 // of every case; the median counts
	attempts    = 8 // at one measurement on a machine that stalls

	accuracyOut = "REDQUAKE_ACCURACY_OUT" // names the file of the table
)

// outcome is one line of the table, and of the file of REDQUAKE_ACCURACY_OUT.
type outcome struct {
	Case     string  `json:"case"`
	Truth    float64 `json:"truthSeconds"`
	Measured float64 `json:"measuredSeconds"`
	Error    float64 `json:"errorSeconds"` // measured - truth
}

// TestGroundTruth makes outages of known length and compares what the load measured with what the test itself timed. The truth is the time from the
// instant at which the breaking call returned to the instant just before the mending call. The measured outage runs from the last success
// before to the first after, so it is longer by up to one time between successes and one round trip.
//
// Requests do not time out within the outage, so that connections stay where the fault leaves them, except in the cases that say so: there every
// connection is made anew while the server does not answer, and must be back as fast.
//
// Each case is measured three times, and the median of the errors counts, unless the first one is within the margin: the machine has other work to do as well. A measurement is made again only where the test's own timer was late by more than the case's margin around one of the two instants: then the machine stood still, and
// neither the truth nor the measurement is worth anything. What was measured has no say in that.
func TestGroundTruth(t *testing.T) {
	ms := time.Millisecond
	open := plan.Shape{Rate: 2000}
	closed := plan.Shape{Users: 4} // few enough that two processors are not saturated
	var table []outcome
	var report strings.Builder
	w := tabwriter.NewWriter(&report, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\ttruth\tmeasured\terror\tof all\tallowed\tprobe\trecovery\t")
	for _, c := range []struct {
		name   string
		breaks func(*testing.T) breakable
		shape  plan.Shape
		length time.Duration
		expire bool // requests time out within the outage
	}{
		{"held, open loop, 50 ms", newProxyHold, open, 50 * ms, false},
		{"held, open loop, 500 ms", newProxyHold, open, 500 * ms, false},
		{"held, open loop, 3 s", newProxyHold, open, 3000 * ms, false},
		{"stopped, open loop, 50 ms", newStop, open, 50 * ms, false},
		{"stopped, open loop, 500 ms", newStop, open, 500 * ms, false},
		{"stopped, open loop, 3 s", newStop, open, 3000 * ms, false},
		{"held, requests time out, 3 s", newProxyHold, open, 3000 * ms, true},
		{"stopped, requests time out, 3 s", newStop, open, 3000 * ms, true},
		{"refused, open loop, 500 ms", newProxyRefuse, open, 500 * ms, false},
		{"refused, open loop, 3 s", newProxyRefuse, open, 3000 * ms, false},
		{"held, closed loop, 50 ms", newProxyHold, closed, 50 * ms, false},
		{"held, closed loop, 500 ms", newProxyHold, closed, 500 * ms, false},
		{"stopped, closed loop, 50 ms", newStop, closed, 50 * ms, false},
		{"stopped, closed loop, 500 ms", newStop, closed, 500 * ms, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			margin := truthMargin
			if c.expire || strings.HasPrefix(c.name, "refused") {
				margin += truthRemade
			}
			var runs []measured
			for len(runs) < repeats {
				one := measureUndisturbed(t, c.breaks, c.shape, c.length, c.expire, margin)
				if runs = append(runs, one); os.Getenv(accuracyOut) == "" && one.off().Abs() <= one.allowed(margin) {
					break // good enough at once: only the published table has three of each
				}
			}
			slices.SortFunc(runs, func(a, b measured) int { return cmp.Compare(a.off(), b.off()) })
			m := runs[len(runs)/2]
			allowed := m.allowed(margin)
			table = append(table, outcome{c.name, m.truth.Seconds(), m.impact.Outage.Seconds(), m.off().Seconds()})
			fmt.Fprintf(w, "%s\t%v\t%v\t%v\t%v..%v\t%v\t%v\t%v\t\n", c.name, round(m.truth), round(m.impact.Outage), round(m.off()),
				round(runs[0].off()), round(runs[len(runs)-1].off()), round(allowed), shown(m.impact.ServerOutage), shown(m.impact.RecoveryTime))
			if m.off().Abs() > allowed {
				t.Errorf("outage measured as %v, was %v: off by %v, allowed %v", m.impact.Outage, m.truth, m.off(), allowed)
			}
		})
	}
	_ = w.Flush()
	t.Logf("\n%s", report.String())
	if file := os.Getenv(accuracyOut); file != "" {
		b, err := json.MarshalIndent(table, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shown is a figure for the table; -1 stands for none.
func shown(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return round(d).String()
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// measured is what came out of one attempt.
type measured struct {
	truth  time.Duration
	impact impact.Impact
	stall  time.Duration // how late the test's own timer was around the outage's ends
}

// allowed is the margin and one time between successes.
func (m measured) allowed(margin time.Duration) time.Duration {
	return margin + time.Duration(float64(time.Second)/m.impact.BaselineRate)
}

func (m measured) off() time.Duration { return m.impact.Outage - m.truth }

// measureUndisturbed measures until the machine did not stand still for longer than the case allows.
func measureUndisturbed(t *testing.T, breaks func(*testing.T) breakable, shape plan.Shape, length time.Duration, expire bool, stallLimit time.Duration) measured {
	t.Helper()
	for n := 1; ; n++ {
		m := measure(t, breaks(t), shape, length, expire)
		if m.stall <= stallLimit {
			return m
		}
		t.Logf("attempt %d does not count: the machine stood still for %v when the outage began or ended (truth %v, measured %v)",
			n, m.stall, m.truth, m.impact.Outage)
		if n == attempts {
			t.Fatalf("the machine is too busy to time an outage: %d attempts", n)
		}
	}
}

// measure runs a load against b, breaks it for length, and analyzes the record.
func measure(t *testing.T, b breakable, shape plan.Shape, length time.Duration, expire bool) measured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shape.Duration = truthBefore + length + truthAfter
	timeout := length + 2*time.Second
	if expire {
		timeout = 800 * time.Millisecond // no multiple of it is the length: dials are under way when the server is back
	}
	plan := &plan.Plan{
		Run: "truth", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{b.address()}},
		Client: plan.Client{Connections: 20, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: timeout, Protocol: 3},
		Shape:  shape,
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "truth:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}},
	}
	if _, refuse := b.(proxyRefuse); refuse {
		// Refused connections try again every 25 to 50 ms, each for itself: 100 of them are back within 5 ms but for once in a thousand.
		plan.Client.Connections = 100
	}
	runner, err := load.New(plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(50 * time.Millisecond)
	s := sample.NewSeries(plan.Run, start, plan.Interval, plan.Operations(), 1)
	ended := make(chan error, 1)
	go func() {
		ended <- runner.Run(ctx, start, func(iv *sample.Interval) {
			if err := s.Add(0, iv); err != nil {
				t.Error(err)
			}
		})
	}()
	watch := watchStalls()
	time.Sleep(time.Until(start.Add(truthBefore)))
	called := time.Now()
	b.cut()
	broken := time.Now()
	time.Sleep(time.Until(broken.Add(length)))
	mending := time.Now()
	b.mend()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	stalls := watch.stop()
	s.Finish(0)
	m := measured{truth: mending.Sub(broken)}
	for _, edge := range []time.Time{called, mending} {
		m.stall = max(m.stall, stalls.around(edge))
	}
	m.stall = max(m.stall, broken.Sub(called))
	m.impact = impact.Analyze(s, impact.Fault{At: called.Sub(start)}, impact.Options{BaselineMinimum: time.Second, SustainFor: time.Second})
	return m
}

// stallWatch is a timer that notes when it came late.
type stallWatch struct {
	quit chan struct{}
	done chan []stall
}

type stall struct {
	at   time.Time
	late time.Duration
}

type stalls []stall

func watchStalls() *stallWatch {
	w := &stallWatch{quit: make(chan struct{}), done: make(chan []stall, 1)}
	go func() {
		const nap = 500 * time.Microsecond
		var list []stall
		for {
			select {
			case <-w.quit:
				w.done <- list
				return
			default:
			}
			began := time.Now()
			time.Sleep(nap)
			if late := time.Since(began) - nap; late > truthMargin/2 {
				list = append(list, stall{time.Now(), late})
			}
		}
	}()
	return w
}

func (w *stallWatch) stop() stalls {
	close(w.quit)
	return <-w.done
}

// around is the longest stall that touches the stretch from 5 ms before to 10 ms after an instant.
func (l stalls) around(edge time.Time) time.Duration {
	var longest time.Duration
	for _, s := range l {
		if s.at.After(edge.Add(-5*time.Millisecond)) && s.at.Add(-s.late).Before(edge.Add(10*time.Millisecond)) {
			longest = max(longest, s.late)
		}
	}
	return longest
}

// breakable is a Redis that can be taken away and given back.
type breakable interface {
	address() string
	cut()  // from its return on no request is answered
	mend() // from its call on requests can be answered
}

// stopped is a real redis-server whose process is stopped by signal: connections stay, the kernel goes on accepting.
type stopped struct{ *redisServer }

func newStop(t *testing.T) breakable { return stopped{startRedis(t)} }

func (s stopped) cut() { s.signal(syscall.SIGSTOP) }

func (s stopped) mend() { s.signal(syscall.SIGCONT) }
