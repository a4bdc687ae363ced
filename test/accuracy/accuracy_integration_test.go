//go:build integration

package accuracy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/await"
)

const (
	accuracyOut = "REDQUAKE_ACCURACY_OUT"     // the file of the result
	accuracyFew = "REDQUAKE_ACCURACY_OUTAGES" // the most outages of an experiment, to try them; "" = all
)

// outage is one planted outage.
type outage struct {
	Case      string  `json:"case"`
	Disturbed bool    `json:"disturbed"`
	Truth     float64 `json:"truthSeconds"`   // how long the server left all clients without an answer
	Planted   float64 `json:"plantedSeconds"` // from the server being stopped to the call that continued it
	Measured  float64 `json:"measuredSeconds"`
	AtLeast   float64 `json:"atLeastSeconds"`
	AtMost    float64 `json:"atMostSeconds"`
	Doubt     string  `json:"doubt,omitempty"`
}

// within reports whether the truth lies within the bounds.
func (o *outage) within() bool { return o.contains(o.Truth) }

func (o *outage) contains(seconds float64) bool { return o.AtLeast <= seconds && seconds <= o.AtMost }

// experiment is one run of a load with several outages.
type experiment struct {
	name    string
	way     way
	disturb disturbance
	load    load
	outages int
}

var (
	open   = load{shape: plan.Shape{Rate: 1500}, depth: 1, conns: 40}
	closed = load{shape: plan.Shape{Users: 8}, depth: 1, conns: 8}
	piped  = load{shape: plan.Shape{Rate: 4000}, depth: 64, conns: 4}
	pods   = load{shape: plan.Shape{Rate: 1500}, depth: 1, conns: 20, pods: 2}
	shards = load{shape: plan.Shape{Rate: 1500}, depth: 1, conns: 20, probe: 100}
	mixed  = load{shape: plan.Shape{Rate: 1500}, depth: 1, conns: 40, reads: true}

	experiments = []experiment{
		{"stopped, open loop", stopped, quiet, open, 25},
		{"stopped, closed loop", stopped, quiet, closed, 20},
		{"stopped, pipeline of 64", stopped, quiet, piped, 12},
		{"stopped, two load pods", stopped, quiet, pods, 15},
		{"held, open loop", held, quiet, open, 12},
		{"refused, open loop", refused, quiet, open, 12},
		{"one shard of three stopped", shard, quiet, shards, 15},
		{"writes fail with MISCONF", misconf, quiet, mixed, 12},
		{"writes fail with READONLY", readonly, quiet, mixed, 12},
		{"stopped, open loop, CPU burnt", stopped, burnt, open, 22},
		{"stopped, open loop, generator halted", stopped, halted, open, 22},
		{"stopped, open loop, generator throttled", stopped, throttled, open, 16},
		{"stopped, closed loop, CPU burnt", stopped, burnt, closed, 12},
		{"stopped, two load pods, one halted", stopped, halted, pods, 12},
		{"one shard of three stopped, CPU burnt", shard, burnt, shards, 10},
		{"writes fail with MISCONF, CPU burnt", misconf, burnt, mixed, 10},
	}
)

// TestMeasureBounds plants outages of 50 ms to 5 s and reports how many of the true lengths lie within the bounds of
// the measured ones, and how wide these are.
func TestMeasureBounds(t *testing.T) {
	file := os.Getenv(accuracyOut)
	if file == "" {
		t.Skip("only where REDQUAKE_ACCURACY_OUT names the file of the result: make accuracy")
	}
	var all []outage
	for _, e := range experiments {
		if few, err := strconv.Atoi(os.Getenv(accuracyFew)); err == nil {
			e.outages = min(e.outages, few)
		}
		t.Run(e.name, func(t *testing.T) { all = append(all, e.measure(t)...) })
	}
	t.Logf("\n%s", tableOf(all))
	if t.Failed() {
		t.Fatal("the file is not written: experiments failed")
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	inside, planted := 0, 0
	for i := range all {
		if all[i].within() {
			inside++
		}
		if all[i].contains(all[i].Planted) {
			planted++
		}
	}
	t.Logf("%d of %d true lengths lie within the bounds, and %d of the times between the calls", inside, len(all), planted)
	if share := float64(inside) / float64(len(all)); share < 0.99 {
		t.Errorf("%d of %d true lengths lie within the bounds, %.1f%%; at least 99%% should", inside, len(all), 100*share)
	}
}

// planted is when an outage began and ended: the call that breaks the server, the instant from which it is broken, the
// call that restores it, and what the wire shows.
type planted struct {
	called, broken, restored time.Time
	silence
}

func (e experiment) measure(t *testing.T) []outage {
	r := rand.New(rand.NewPCG(uint64(len(e.name)), 11))
	lengths, total := make([]time.Duration, e.outages), 10*time.Second
	for i := range lengths {
		lengths[i] = time.Duration(50 * math.Pow(100, r.Float64()) * float64(time.Millisecond))
		total += lengths[i] + pause + notice + refusal + 20*time.Millisecond
	}
	b := newBreakable(t, e.way)
	generators := e.load.start(t, b.target(), 2*total) // it is stopped: on a busy machine each outage takes longer
	switch e.disturb {
	case burnt:
		burn(t, 3)
	case throttled:
		throttle(t, generators.processes[0].Process.Pid, 0.06)
	case quiet:
		keepAwake(t)
	case halted:
	}
	await.Pass(2*time.Second, "the load before the first outage is the baseline")
	var truths []planted
	for _, length := range lengths {
		await.Pass(pause, "the time between two outages")
		begin := time.Now().Add(notice)
		wait := func() {}
		if e.disturb == halted {
			wait = haltAround(r, generators.processes[0].Process, begin, length)
		}
		truths = append(truths, plant(t, b, begin, length))
		wait()
	}
	await.Pass(second, "the load after the last outage")
	generators.stop(t)
	var list []outage
	generators.end(t, func(series *merged.Series, since func(time.Time) time.Duration) {
		list = e.compare(t, series, since, truths)
	})
	return list
}

// Between outages are a pause, and the time in which a generator may be halted over the begin of the next one.
const (
	pause  = 1600 * time.Millisecond
	notice = 350 * time.Millisecond
)

// lead is how long before an outage the capture begins: longer than a request takes.
const lead = 50 * time.Millisecond

// plant makes one outage, on a thread with a high priority.
func plant(t *testing.T, b breakable, begin time.Time, length time.Duration) planted {
	t.Helper()
	done := make(chan planted)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its priority
		if err := favour(0); err != nil {
			t.Errorf("give the test a high priority, which takes root: %v", err)
		}
		var p planted
		await.PassTo(begin.Add(-lead), "the begin of the capture")
		w, err := tap(b.address())
		if _, fails := b.(failing); fails && err == nil {
			w.fails = true
		}
		if err != nil {
			t.Errorf("capture the answers, which takes root: %v", err)
			done <- p
			return
		}
		defer func() { go w.close() }() // the kernel waits for all CPUs
		await.PassTo(begin, "the begin of the outage")
		p.called = time.Now()
		b.cut()
		p.broken = time.Now()
		await.PassTo(p.broken.Add(length), "the length of the outage")
		p.restored = time.Now()
		b.restore()
		if p.silence, err = w.hear(p.restored, pause); err != nil {
			t.Error(err)
		}
		done <- p
	}()
	return <-done
}

// compare analyzes the record around each outage.
func (e experiment) compare(
	t *testing.T, series *merged.Series, since func(time.Time) time.Duration, truths []planted,
) []outage {
	t.Helper()
	var list []outage
	for _, figure := range e.way.figures() {
		for _, p := range truths {
			at := since(p.called)
			m := impact.Analyze(series,
				impact.Fault{
					At:          at,
					Deadline:    p.restored.Sub(p.called) + pause,
					Uncertainty: series.ClockUncertainty,
					Took:        p.broken.Sub(p.called),
				},
				impact.Options{BaselineWindow: time.Second, BaselineMinimum: time.Millisecond, SustainFor: 300 * time.Millisecond})
			measured := figure.of(&m)
			o := outage{
				Case: e.name + figure.name, Disturbed: e.disturb != quiet, Truth: seconds(p.truth()),
				Planted:  seconds(p.restored.Sub(p.broken)),
				Measured: seconds(measured.Value), AtLeast: seconds(measured.AtLeast), AtMost: seconds(measured.AtMost),
			}
			if !o.within() || !o.contains(o.Planted) {
				t.Logf("%s: the truth is %v, planted were %v, the bounds are %v; gaps %s", o.Case, p.truth(),
					p.restored.Sub(p.broken), measured,
					gapsAround(series, at, p.restored.Sub(p.called)))
			}
			for _, d := range m.Doubts {
				if d.Reason == impact.GeneratorStalled {
					o.Doubt = d.Message
				}
			}
			list = append(list, o)
		}
	}
	return list
}

// seconds are to the microsecond, as in a status. The truth and a bound may come from the same stamps, by two clocks.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// truth is how long the server answered nobody: since it was stopped or, where a request was waiting already or had
// failed, since that one. A machine that is held up right before the stop is an outage, too. The stamps of packets are
// of the wall clock.
func (p *planted) truth() time.Duration {
	from := p.broken.UnixNano()
	if !p.waited.IsZero() {
		from = min(from, p.waited.UnixNano())
	}
	return time.Duration(p.answered.UnixNano() - from)
}

// gapsAround lists the gaps around an outage: those of the load, and of what can have one alone.
func gapsAround(series *merged.Series, at, length time.Duration) string {
	var text strings.Builder
	list := func(of string, gaps []record.Gap) {
		for _, g := range gaps {
			if from, to := time.Duration(g.From)-at, time.Duration(g.To)-at; to > -second && from < length+second {
				fmt.Fprintf(&text, "%s%v to %v %+v; ", of, from, to, g)
			}
		}
	}
	all := gaps.New(series, max(0, at-second), at)
	list("", series.Gaps())
	list("probe ", gapsOf(all.Probe()))
	list("writes ", gapsOf(all.Kind(impact.Writes)))
	for shard := range series.Shards() {
		list(fmt.Sprintf("shard %d ", shard), gapsOf(all.Shard(shard)))
	}
	return text.String()
}

func gapsOf(list []gaps.Bounded) []record.Gap {
	plain := make([]record.Gap, len(list))
	for i := range list {
		plain[i] = list[i].Gap
	}
	return plain
}

const second = time.Second
