package anomaly

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

func TestAnomalies(t *testing.T) {
	join := func(parts ...[]uint64) (all []uint64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		rates   []uint64
		exclude []summary.Window
		want    []Anomaly
	}{
		{name: "none", rates: recorded.Repeat(30, 1000)},
		{
			name:  "one second is too short",
			rates: join(recorded.Repeat(10, 1000), recorded.Repeat(1, 0), recorded.Repeat(10, 1000)),
		},
		{name: "71 % is not low", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(3, 710), recorded.Repeat(10, 1000))},
		{
			name: "three seconds", rates: join(recorded.Repeat(10, 1000), []uint64{600, 300, 500}, recorded.Repeat(10, 1000)),
			want: []Anomaly{{At: 10 * time.Second, Length: 3 * time.Second, MinRate: 300, Usual: 1000, Depth: 0.7}},
		},
		{
			name: "at the end", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(2, 0)),
			want: []Anomaly{{At: 10 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}},
		},
		{
			name:    "in a fault",
			rates:   join(recorded.Repeat(10, 1000), recorded.Repeat(5, 0), recorded.Repeat(10, 1000)),
			exclude: []summary.Window{{From: 10 * time.Second, To: 15 * time.Second}},
		},
		{
			name:    "beyond a fault",
			rates:   join(recorded.Repeat(10, 1000), recorded.Repeat(5, 0), recorded.Repeat(10, 1000)),
			exclude: []summary.Window{{From: 9500 * time.Millisecond, To: 12500 * time.Millisecond}},
			want:    []Anomaly{{At: 13 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}},
		},
		{
			name: "a new level becomes usual", rates: join(recorded.Repeat(40, 1000), recorded.Repeat(100, 400)),
			want: []Anomaly{{At: 40 * time.Second, Length: 30 * time.Second, MinRate: 400, Usual: 1000, Depth: 0.6}},
		},
		{
			name:  "too early for a baseline",
			rates: join(recorded.Repeat(3, 1000), recorded.Repeat(3, 0), recorded.Repeat(10, 1000)),
		},
	} {
		if diff := cmp.Diff(c.want, Anomalies(recorded.PerSecond(t, c.rates...), 0, plan.Planned{}, c.exclude),
			cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-6 })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestLostPodIsNoAnomaly(t *testing.T) {
	l := recorded.Load{Rate: 1000, Length: 40 * time.Second, Pods: 2}
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
	for p := range 2 {
		for _, iv := range l.Intervals(p, 2)[:400-200*p] {
			if err := s.Add(p, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Lose(1)
	if found := Anomalies(s, 0, plan.Planned{}, nil); len(found) > 0 || s.Complete() != 400 {
		t.Errorf("found %v in %d intervals", found, s.Complete())
	}
}

// The plan halves the load: what is not asked for is no dip.
func TestTruthPlannedChangeIsNoAnomaly(t *testing.T) {
	const length = 90 * time.Second
	half := summary.Window{From: 45 * time.Second, To: length}
	harmless := recorded.Load{Rate: 1000, Length: length, Slow: []summary.Window{half}}.Record(t)
	kill := recorded.Load{
		Rate:   1000,
		Length: length,
		Slow:   []summary.Window{half},
		Down:   []summary.Window{{From: 40 * time.Second, To: 46 * time.Second}},
	}.Record(t)
	harmless.Finish(0)
	kill.Finish(0)
	for _, rate := range []bool{true, false} {
		found := Anomalies(harmless, 0, recorded.Halved(45*time.Second, rate, 0), nil)
		truth.Report(t, "T8", fmt.Sprintf("anomalies of a load planned to halve, of a rate: %t", rate), "0",
			fmt.Sprint(len(found)), len(found) == 0)
	}
	// A fall below the plan is one nevertheless.
	if found := Anomalies(kill, 0, recorded.Halved(45*time.Second, true, 0), nil); len(found) != 1 ||
		found[0].Depth != 1 || found[0].At != 40*time.Second {
		t.Errorf("anomalies %+v", found)
	}
}

// A constant load of 60 s drains for 4 s.
func TestDrainIsNoDip(t *testing.T) {
	const planned = 60 * time.Second
	s := recorded.Load{
		Rate:   1000,
		Length: planned + 4*time.Second,
		Down:   []summary.Window{{From: planned, To: planned + 4*time.Second}},
	}.Record(t)
	s.Finish(0)
	if dips := Anomalies(s, 0, plan.Planned{End: planned}, nil); len(dips) > 0 {
		t.Errorf("dips: %+v", dips)
	}
}
