package throughput

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

func TestSteady(t *testing.T) {
	var waves, slowWaves, rising []uint64
	for i := range uint64(20) {
		waves = append(waves, 900+200*(i%2)) // 100 around 1000: standard deviation 100*sqrt(20/19) = 102.6
		slowWaves = append(slowWaves, 90+20*(i%2))
		rising = append(rising, 1000+10*i)
	}
	for _, c := range []struct {
		name  string
		rates []uint64
		from  time.Duration
		want  bool
		why   string
	}{
		{
			"constant", recorded.Repeat(20, 1000), 0, true,
			"throughput is steady at 1000 requests/s (varies by 0.0 %) over the last 20s",
		},
		{"too short", recorded.Repeat(19, 1000), 0, false, "measured for 19s of the 20s"},
		{"warm-up does not count", recorded.Repeat(25, 1000), 6 * time.Second, false, "measured for 19s of the 20s"},
		{
			"what was before the window does not count",
			append([]uint64{10, 5000}, recorded.Repeat(20, 1000)...),
			0,
			true,
			"steady",
		},
		{"no load", recorded.Repeat(20, 0), 0, false, "no successes"},
		{"waves", waves, 0, false, "throughput varies by 10.3 % (limit 5 %) over the last 20s"},
		{"the same relative waves, slow", slowWaves, 0, false, "throughput varies by 10.3 % (limit 10 %)"},
		{"rising", rising, 0, false, "throughput varies by 5.4 % (limit 5 %)"},
	} {
		ok, why := Steady(recorded.PerSecond(t, c.rates...), 20*time.Second, c.from, plan.Planned{})
		if ok != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q, want %v, %q", c.name, ok, why, c.want, c.why)
		}
	}
	// 3 per second on 1000: varies by 1.7 %, but rises by 60/1028.5 = 5.8 % over 20 s. Counts are in tens: one step of 30
	// every ten seconds would not do.
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	for i := range int64(20) {
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 1)}
		iv.Ops[0].OK = uint64(1060 - 3*i)
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	if ok, why := Steady(s, 20*time.Second, 0, plan.Planned{}); ok ||
		!strings.Contains(why, "throughput falls by 5.8 % (limit 5 %)") {
		t.Errorf("slowly falling: %v, %q", ok, why)
	}
}

// A window that is no multiple of the step is that multiple above it: the delay of a fault may be any.
func TestSteadyOverAnyWindow(t *testing.T) {
	t.Parallel()
	rates := recorded.Repeat(30, 1000)
	for _, window := range []time.Duration{
		20 * time.Second, 20*time.Second + time.Microsecond, 20639 * time.Millisecond,
		29999 * time.Millisecond,
	} {
		if ok, why := Steady(recorded.PerSecond(t, rates...), window, 0, plan.Planned{}); !ok {
			t.Errorf("over %s: %s", window, why)
		}
	}
	if ok, why := Steady(recorded.PerSecond(t, rates...), 30*time.Second+time.Microsecond, 0, plan.Planned{}); ok ||
		why != "measured for 30s of the 30.1s that must be steady" {
		t.Errorf("over more than there is: %v, %s", ok, why)
	}
}

func TestSteadyFollowsAPlannedRate(t *testing.T) {
	s := recorded.Load{
		Rate:   1000,
		Length: 60 * time.Second,
		Slow:   []summary.Window{{From: 50 * time.Second, To: 60 * time.Second}},
	}.Record(t)
	if ok, why := Steady(s, 20*time.Second, 0, recorded.Halved(50*time.Second, true, 0)); !ok ||
		!strings.Contains(why, "500 requests/s") {
		t.Error(why)
	}
	if ok, why := Steady(s, 20*time.Second, 0, recorded.Halved(50*time.Second, false, 0)); ok {
		t.Error(why)
	}
}
