package load

import (
	"bytes"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// feed gives progress 100 ms intervals with one request each: of 0.2 ms, and in every hundredth an error instead.
func feed(t *testing.T, p *progress, intervals int) {
	t.Helper()
	series := merged.New("x", time.Unix(0, 0), p.plan.Interval, []string{"get"}, 1)
	for i := range intervals {
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		if i%100 == 99 {
			iv.Ops[0].Fail = 1
		} else {
			iv.Ops[0].OK = 1
			var h histogram.Histogram
			h.Record(int64(200 * time.Microsecond))
			iv.Ops[0].Latency = h.AppendTo(nil)
		}
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
		p.interval(iv, series)
	}
}

func TestProgress(t *testing.T) {
	plan := &plan.Plan{
		Interval: 100 * time.Millisecond,
		Shape:    plan.Shape{Users: 1, RampUp: 5 * time.Second, WarmUp: 5 * time.Second, Duration: 20 * time.Second},
	}
	var out bytes.Buffer
	p := newProgress(&out, plan)
	p.show("connecting")
	feed(t, p, 160)
	p.done()
	want := `connecting
5s  16.7%  ramping up  10/s  p99 0.2ms  errors 0
10s  33.3%  warming up  9/s  p99 0.2ms  errors 1 (1%)
15s  50%  10/s  p99 0.2ms  errors 1 (0.67%)
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, &plan.Plan{Interval: 100 * time.Millisecond, Shape: plan.Shape{Users: 1, Requests: 20}})
	p.terminal, p.every, p.next = true, everyOnTerminal, everyOnTerminal
	feed(t, p, 12)
	p.done()
	p.done()
	want := "\r500ms  25%  10/s  p99 0.2ms  errors 0\x1b[K\r1s  50%  10/s  p99 0.2ms  errors 0\x1b[K\r\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
