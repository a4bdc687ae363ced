package impact

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/recorded"
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
		{name: "one second is too short", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(1, 0), recorded.Repeat(10, 1000))},
		{name: "71 % is not low", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(3, 710), recorded.Repeat(10, 1000))},
		{name: "three seconds", rates: join(recorded.Repeat(10, 1000), []uint64{600, 300, 500}, recorded.Repeat(10, 1000)),
			want: []Anomaly{{At: 10 * time.Second, Length: 3 * time.Second, MinRate: 300, Usual: 1000, Depth: 0.7}}},
		{name: "at the end", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(2, 0)),
			want: []Anomaly{{At: 10 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}}},
		{name: "in a fault", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(5, 0), recorded.Repeat(10, 1000)), exclude: []summary.Window{seconds(10, 15)}},
		{name: "beyond a fault", rates: join(recorded.Repeat(10, 1000), recorded.Repeat(5, 0), recorded.Repeat(10, 1000)), exclude: []summary.Window{seconds(9.5, 12.5)},
			want: []Anomaly{{At: 13 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}}},
		{name: "a new level becomes usual", rates: join(recorded.Repeat(40, 1000), recorded.Repeat(100, 400)),
			want: []Anomaly{{At: 40 * time.Second, Length: 30 * time.Second, MinRate: 400, Usual: 1000, Depth: 0.6}}},
		{name: "too early for a baseline", rates: join(recorded.Repeat(3, 1000), recorded.Repeat(3, 0), recorded.Repeat(10, 1000))},
	} {
		if diff := cmp.Diff(c.want, Anomalies(recorded.PerSecond(t, c.rates...), 0, plan.Planned{}, c.exclude), approx); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestLostPodIsNoAnomaly(t *testing.T) {
	l := recorded.Load{Rate: 1000, Length: 40 * time.Second, Pods: 2}
	s := record.NewSeries("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
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
