package durations

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

func TestPhases(t *testing.T) {
	for _, tc := range []struct {
		name       string
		milestones []Milestone
		recovery   time.Duration
		want       []Phase
	}{
		{"nothing known", nil, 300 * ms, []Phase{{Sustained, 300 * ms, Exactly(300 * ms)}}},
		{
			"in the order of time",
			[]Milestone{
				{"Ready", 700 * ms, 0, 0},
				{"PodDeleted", 40 * ms, 0, 0},
				{Serves, 750 * ms, 0, 0},
				{FirstOK, 900 * ms, 0, 0},
			},
			time.Second,
			[]Phase{
				{"PodDeleted", 40 * ms, Exactly(40 * ms)},
				{"Ready", 700 * ms, Exactly(660 * ms)},
				{Serves, 750 * ms, Exactly(50 * ms)},
				{FirstOK, 900 * ms, Exactly(150 * ms)},
				{Sustained, time.Second, Exactly(100 * ms)},
			},
		},
		{
			"a server that is ready and not served by",
			[]Milestone{{"Ready", 700 * ms, 0, 0}, {Serves, 1700 * ms, 0, 0}},
			2 * time.Second,
			[]Phase{
				{"Ready", 700 * ms, Exactly(700 * ms)},
				{Unexplained, 1700 * ms, Exactly(time.Second)},
				{Serves, 1700 * ms, Exactly(0)},
				{Sustained, 2 * time.Second, Exactly(300 * ms)},
			},
		},
		{
			"before the fault, and after recovery",
			[]Milestone{{"Scheduled", -ms, 0, 0}, {"ReplicasResynced", 2 * time.Second, 0, 0}},
			time.Second,
			[]Phase{{Sustained, time.Second, Exactly(time.Second)}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Phases(Milestone{}, tc.milestones, Exactly(tc.recovery))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The phases add up to the whole in any case.
func TestPhasesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"PodDeleted", "Scheduled", "Ready", "Promoted", Serves, FirstOK, Sustained}
	for range 500 {
		var milestones []Milestone
		for range random.IntN(12) {
			milestones = append(milestones, Milestone{
				names[random.IntN(len(names))],
				time.Duration(random.Int64N(int64(10*time.Second))) - time.Second, 0, 0,
			})
		}
		recovery := time.Duration(random.Int64N(int64(9 * time.Second)))
		var sum time.Duration
		for _, p := range Phases(Milestone{}, milestones, Exactly(recovery)) {
			if p.Duration.Value < 0 {
				t.Fatalf("%v: phase %+v", milestones, p)
			}
			sum += p.Duration.Value
		}
		if sum != recovery {
			t.Fatalf("%v: the parts are %s, the whole %s", milestones, sum, recovery)
		}
	}
}

// The uncertainty of an instant is that of the phases before and after it, not of their sum. That of the injection is
// in the first phase.
func TestPhasesAreAsUncertainAsTheirEnds(t *testing.T) {
	injection := Milestone{Sooner: ms, Later: 41 * ms}
	want := []Phase{
		{"Started", 700 * ms, Bounded{700 * ms, 0, 701 * ms}},
		{Serves, 800 * ms, Bounded{100 * ms, 97 * ms, 800 * ms}},
		{Sustained, 900 * ms, Bounded{100 * ms, 90 * ms, 107 * ms}},
	}
	recovery := Bounded{900 * ms, (900 - 10 - 41) * ms, (900 + 4 + 1) * ms}
	got := Phases(injection, []Milestone{{"Started", 700 * ms, 700 * ms, 0}, {Serves, 800 * ms, 3 * ms, 0}}, recovery)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Phases(injection, nil, recovery); got[0].Duration != recovery {
		t.Errorf("a recovery without milestones is %v, want %v", got[0].Duration, recovery)
	}
}
