//go:build integration

package accuracy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// accuracyOut names the file of the result.
const accuracyOut = "REDQUAKE_ACCURACY_OUT"

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

// experiment is one run of a load generator with several outages.
type experiment struct {
	name    string
	way     way
	disturb disturbance
	shape   plan.Shape
	depth   int // pipeline
	conns   int
	outages int
}

var (
	open   = plan.Shape{Rate: 1500}
	closed = plan.Shape{Users: 8}

	experiments = []experiment{
		{"stopped, open loop", stopped, quiet, open, 1, 40, 40},
		{"stopped, closed loop", stopped, quiet, closed, 1, 8, 25},
		{"stopped, pipeline of 64", stopped, quiet, plan.Shape{Rate: 4000}, 64, 4, 20},
		{"held, open loop", held, quiet, open, 1, 40, 15},
		{"refused, open loop", refused, quiet, open, 1, 40, 15},
		{"stopped, open loop, CPU burnt", stopped, burnt, open, 1, 40, 35},
		{"stopped, open loop, generator halted", stopped, halted, open, 1, 40, 35},
		{"stopped, open loop, generator throttled", stopped, throttled, open, 1, 40, 25},
		{"stopped, closed loop, CPU burnt", stopped, burnt, closed, 1, 8, 15},
	}
)

// TestMeasureBounds plants outages of 50 ms to 5 s and reports how many of the true lengths lie within the bounds of the measured ones, and how wide these are.
func TestMeasureBounds(t *testing.T) {
	file := os.Getenv(accuracyOut)
	if file == "" {
		t.Skip("only where REDQUAKE_ACCURACY_OUT names the file of the result: make accuracy")
	}
	var all []outage
	for _, e := range experiments {
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

// planted is when an outage began and ended: the call that breaks the server, the instant from which it is broken, the call that restores it, and what
// the wire shows.
type planted struct {
	called, broken, restored time.Time
	silence
}

func (e experiment) measure(t *testing.T) []outage {
	r := rand.New(rand.NewPCG(uint64(len(e.name)), 11))
	lengths, total := make([]time.Duration, e.outages), 3*time.Second
	for i := range lengths {
		lengths[i] = time.Duration(50 * math.Pow(100, r.Float64()) * float64(time.Millisecond))
		total += lengths[i] + pause + notice + refusal + 20*time.Millisecond
	}
	b := newBreakable(t, e.way)
	generator, file := e.start(t, b.address(), total+2*time.Second)
	switch e.disturb {
	case burnt:
		burn(t, 3)
	case throttled:
		throttle(t, generator.Process.Pid, 0.06)
	case quiet:
		keepAwake(t)
	case halted:
	}
	time.Sleep(2 * time.Second)
	var truths []planted
	for _, length := range lengths {
		time.Sleep(pause)
		begin := time.Now().Add(notice)
		wait := func() {}
		if e.disturb == halted {
			wait = haltAround(r, generator.Process, begin, length)
		}
		truths = append(truths, plant(t, b, begin, length))
		wait()
	}
	return e.compare(t, e.end(t, generator, file), truths)
}

// end waits for the end of the load and returns its record.
func (e experiment) end(t *testing.T, generator *exec.Cmd, file string) *record.Series {
	t.Helper()
	if err := generator.Wait(); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(file + ".record")
	if err != nil {
		t.Fatal(err)
	}
	series, err := record.DecodeSeries(packed)
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// Between outages are a pause, and the time in which a generator may be halted over the begin of the next one.
const (
	pause  = 1600 * time.Millisecond
	notice = 350 * time.Millisecond
)

// lead is how long before an outage the capture begins: longer than a request takes.
const lead = 50 * time.Millisecond

// plant makes one outage, on a thread with a real-time priority.
func plant(t *testing.T, b breakable, begin time.Time, length time.Duration) planted {
	t.Helper()
	done := make(chan planted)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its priority
		if err := realTime(0, 20); err != nil {
			t.Errorf("give the test a real-time priority, which takes root: %v", err)
		}
		var p planted
		time.Sleep(time.Until(begin.Add(-lead)))
		w, err := tap(b.address())
		if err != nil {
			t.Errorf("capture the answers, which takes root: %v", err)
			done <- p
			return
		}
		defer func() { go w.close() }() // the kernel waits for all CPUs
		time.Sleep(time.Until(begin))
		p.called = time.Now()
		b.cut()
		p.broken = time.Now()
		time.Sleep(time.Until(p.broken.Add(length)))
		p.restored = time.Now()
		b.restore()
		if p.silence, err = w.hear(p.restored, pause); err != nil {
			t.Error(err)
		}
		done <- p
	}()
	return <-done
}

// start starts a load generator and waits until its load begins.
func (e experiment) start(t *testing.T, address string, length time.Duration) (cmd *exec.Cmd, file string) {
	t.Helper()
	shape := e.shape
	shape.Duration = length
	p := plan.Plan{
		Run: "accuracy", Pods: 1, Interval: 100 * time.Millisecond, Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: e.conns, Pipeline: e.depth, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3},
		Shape:  shape,
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "accuracy:", Keys: 1000, Distribution: plan.Uniform}, Values: plan.Values{MinBytes: 32, MaxBytes: 32},
		},
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), generatorPlan+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the load generator did not start: %v", err)
	}
	return cmd, file
}

// compare analyzes the record around each outage.
func (e experiment) compare(t *testing.T, series *record.Series, truths []planted) []outage {
	t.Helper()
	list := make([]outage, len(truths))
	for i, p := range truths {
		at := p.called.Round(0).Sub(series.Start)
		m := impact.Analyze(series, impact.Fault{At: at, Deadline: p.restored.Sub(p.called) + pause},
			impact.Options{BaselineWindow: time.Second, BaselineMinimum: time.Millisecond, SustainFor: 300 * time.Millisecond})
		list[i] = outage{
			Case: e.name, Disturbed: e.disturb != quiet, Truth: seconds(p.truth()), Planted: seconds(p.restored.Sub(p.broken)),
			Measured: seconds(m.Outage.Value), AtLeast: seconds(m.Outage.AtLeast), AtMost: seconds(m.Outage.AtMost),
		}
		if o := &list[i]; !o.within() || !o.contains(o.Planted) {
			t.Logf("the truth is %v, planted were %v, the bounds are %v; gaps %s", p.truth(), p.restored.Sub(p.broken), m.Outage,
				gapsAround(series, at, p.restored.Sub(p.called)))
		}
		for _, d := range m.Doubts {
			if d.Reason == impact.GeneratorStalled {
				list[i].Doubt = d.Message
			}
		}
	}
	return list
}

// seconds are to the microsecond, as in a status. The truth and a bound may come from the same stamps, by two clocks.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// truth is how long the server answered nobody: since it was stopped or, where a request was waiting already, since that one. A machine that is held up
// right before the stop is an outage, too. The stamps of packets are of the wall clock.
func (p *planted) truth() time.Duration {
	from := p.broken.UnixNano()
	if !p.waited.IsZero() {
		from = min(from, p.waited.UnixNano())
	}
	return time.Duration(p.answered.UnixNano() - from)
}

// gapsAround lists the gaps around an outage.
func gapsAround(series *record.Series, at, length time.Duration) string {
	var text strings.Builder
	for _, g := range series.Gaps() {
		if from, to := time.Duration(g.From)-at, time.Duration(g.To)-at; to > -second && from < length+second {
			fmt.Fprintf(&text, "%v to %v %+v; ", from, to, g)
		}
	}
	return text.String()
}

const second = time.Second
