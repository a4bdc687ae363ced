package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/truth"
)

// uneven is the record of an idle run of 100 s whose CPU usage is multiplied by factor in its last busy seconds.
func uneven(t *testing.T, busy int64, change func(*record.Interval, float64)) *record.Series {
	t.Helper()
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 1)
	const length = 1000
	for i := range int64(length) {
		iv := idle().interval(i, 0)
		if over := i + 1 - (length - 10*busy); over > 0 {
			change(iv, (time.Duration(over) * step).Seconds())
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// 80 s at 35 %, 20 s at all of a core: the mean is 48 %, and the core limited the load.
func TestTruthSaturationIsTheWorstStretch(t *testing.T) {
	main := func(iv *record.Interval, over float64) {
		for k := range iv.Servers {
			iv.Servers[k].CPUMainThreadSeconds += 0.65 * over
			iv.Servers[k].CPUSeconds += 0.65 * over
		}
	}
	agent := func(iv *record.Interval, over float64) { iv.Agents[0].CPUSeconds += 0.65 * over }
	throttled := func(iv *record.Interval, over float64) { iv.Agents[0].ThrottledSeconds += 0.2 * over }
	for _, c := range []struct {
		name     string
		busy     int64
		change   func(*record.Interval, float64)
		limit    float64
		without  []impact.Window
		want     Component
		evidence string
	}{
		{"main thread: 80 s at 35 %, 20 s at 100 % of a core", 20, main, 0, nil, RedisMainThread, "100% of one core over its busiest 5s, 48% on average"},
		{"process: 80 s at 40 %, 20 s at 105 % of a core, limit 1.1", 20, main, 1.1, nil, CPULimit, "95% of its container's limit of 1.10 cores over its busiest 5s, 48% on average"},
		{"load pod: 80 s at 30 %, 20 s at 95 % of its limit", 20, agent, 0, nil, LoadGenerator, "95% of its limit of 1.00 cores over its busiest 5s, 43% on average"},
		{"load pod throttled for 20 % of the last 10 s", 10, throttled, 0, nil, LoadGenerator, "20% of the time over its busiest 5s, 2% on average"},
		{"the same within a fault window", 20, main, 0, []impact.Window{{From: 79 * time.Second, To: 100 * time.Second}}, None, "main thread was 35% busy"},
		{"main thread at 100 % for 2 s", 2, main, 0, nil, None, "busy over its busiest 5s, 36% on average"},
	} {
		got := Find(Input{Series: uneven(t, c.busy, c.change), ServerCPULimit: c.limit, Without: c.without})
		truth.Report(t, "T12", c.name, string(c.want)+": "+c.evidence, string(got.Component)+": "+got.Evidence, got.Component == c.want && strings.Contains(got.Evidence, c.evidence))
	}
}

// A stretch does not span two processes, nor a fault.
func TestStretchesAreWhole(t *testing.T) {
	var two timeline
	for i := range int64(4) {
		two.record(i*int64(time.Second), (i+1)*int64(time.Second), usage{cpu: 1})
	}
	for i := range int64(6) {
		two.record((10+i)*int64(time.Second), (11+i)*int64(time.Second), usage{cpu: 0.5})
	}
	if got := two.busiest(usage.cores); got.seconds != 5 || got.cores() != 0.5 {
		t.Errorf("the busiest stretch is %+v", got)
	}
	short := timeline{}
	short.record(0, int64(2*time.Second), usage{cpu: 1})
	if got := short.busiest(usage.cores); got != short.total {
		t.Errorf("of a short run %+v", got)
	}
}
