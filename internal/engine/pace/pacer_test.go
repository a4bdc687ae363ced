package pace

import (
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// TestStepsKeepEarlierArrivals: arrivals before a step keep their due times; after it the rate over all pods is that of
// the step.
func TestStepsKeepEarlierArrivals(t *testing.T) {
	const pods = 3
	steps := []struct {
		at   time.Duration
		rate float64
	}{{2 * time.Second, 700}, {3500 * time.Millisecond, 40}, {5 * time.Second, 2000}, {6 * time.Second, 0}}
	due := make(map[int64]int) // per 100 ms, all pods
	for pod := range pods {
		p := NewPacer(planOf(plan.Shape{
			Rate:     100,
			RampUp:   time.Second,
			Duration: time.Hour,
			Search:   &plan.Search{From: 100, To: 5000},
		}, pods), pod)
		for _, s := range steps {
			next := p.Step(s.at, time.Hour, s.rate)
			for i := range p.Arrivals(int64(s.at)) {
				if p.Due(i) != next.Due(i) {
					t.Fatalf("pod %d: arrival %d was due at %d and is at %d after a step at %v", pod, i, p.Due(i), next.Due(i), s.at)
				}
			}
			if first := next.Due(next.Arrivals(int64(s.at))); first < int64(s.at) {
				t.Errorf("pod %d: the first arrival after the step at %v is due at %d", pod, s.at, first)
			}
			p = next
		}
		if p.Due(p.Total) != math.MaxInt64 || p.Due(p.Total-1) >= int64(6*time.Second) {
			t.Errorf("pod %d: %d arrivals, the last at %d: the load ends at 6 s", pod, p.Total, p.Due(p.Total-1))
		}
		for i := range p.Total {
			due[p.Due(i)/int64(100*time.Millisecond)]++
		}
	}
	for slot, want := range map[int64]int{12: 10, 19: 10, 20: 70, 34: 70, 35: 4, 49: 4, 50: 200, 59: 200} {
		if got := due[slot]; got < want-1 || got > want+1 {
			t.Errorf("%d arrivals in interval %d, want %d", got, slot, want)
		}
	}
}

func TestStepAfterManyRequestsIsExact(t *testing.T) {
	p := NewPacer(planOf(plan.Shape{Rate: 1e6, Duration: 168 * time.Hour, Search: &plan.Search{From: 1e6, To: 1e9}}, 1), 0)
	at := 100 * time.Hour
	next := p.Step(at, 168*time.Hour, 1000)
	n := next.Arrivals(int64(at))
	if n != 360_000_000_000 || next.Due(n) != int64(at)+500_000 {
		t.Errorf("%d arrivals before, the next is due %v after the step", n, time.Duration(next.Due(n)-int64(at)))
	}
}
