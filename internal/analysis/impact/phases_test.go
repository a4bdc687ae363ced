package impact

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPhases(t *testing.T) {
	for _, tc := range []struct {
		name       string
		milestones []Milestone
		recovery   time.Duration
		want       []Phase
	}{
		{"nothing known", nil, 300 * ms, []Phase{{Sustained, 300 * ms, 300 * ms}}},
		{"in the order of time", []Milestone{{"Ready", 700 * ms}, {"PodDeleted", 40 * ms}, {Serves, 750 * ms}, {FirstOK, 900 * ms}}, time.Second,
			[]Phase{{"PodDeleted", 40 * ms, 40 * ms}, {"Ready", 700 * ms, 660 * ms}, {Serves, 750 * ms, 50 * ms}, {FirstOK, 900 * ms, 150 * ms}, {Sustained, time.Second, 100 * ms}}},
		{"a server that is ready and not served by", []Milestone{{"Ready", 700 * ms}, {Serves, 1700 * ms}}, 2 * time.Second,
			[]Phase{{"Ready", 700 * ms, 700 * ms}, {Unexplained, 1700 * ms, time.Second}, {Serves, 1700 * ms, 0}, {Sustained, 2 * time.Second, 300 * ms}}},
		{"before the fault, and after recovery", []Milestone{{"Scheduled", -ms}, {"ReplicasResynced", 2 * time.Second}}, time.Second, []Phase{{Sustained, time.Second, time.Second}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Phases(tc.milestones, tc.recovery)); diff != "" {
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
			milestones = append(milestones, Milestone{names[random.IntN(len(names))], time.Duration(random.Int64N(int64(10*time.Second))) - time.Second})
		}
		recovery := time.Duration(random.Int64N(int64(9 * time.Second)))
		var sum time.Duration
		for _, p := range Phases(milestones, recovery) {
			if p.Duration < 0 {
				t.Fatalf("%v: phase %+v", milestones, p)
			}
			sum += p.Duration
		}
		if sum != recovery {
			t.Fatalf("%v: the parts are %s, the whole %s", milestones, sum, recovery)
		}
	}
}
