package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

const second = int64(time.Second)

func TestSharesAddUp(t *testing.T) {
	for _, total := range []int64{0, 1, 2, 7, 100, 1000003} {
		for _, parts := range []int64{1, 2, 3, 7, 64} {
			sum, least, most := int64(0), int64(math.MaxInt64), int64(0)
			for p := range parts {
				s := Share(total, parts, p)
				sum, least, most = sum+s, min(least, s), max(most, s)
			}
			if sum != total || most-least > 1 {
				t.Errorf("%d over %d parts: sum %d, parts of %d to %d", total, parts, sum, least, most)
			}
		}
	}
}

// shapes are open-loop shapes with every kind of segment.
var shapes = map[string]plan.Shape{
	"constant": {Rate: 1234.5, Duration: 10 * time.Second},
	"slow":     {Rate: 0.7, Duration: time.Minute},
	"ramp":     {Rate: 5000, RampUp: 3 * time.Second, WarmUp: time.Second, Duration: 2 * time.Second},
	"stages": {
		Stages: []plan.Stage{
			{Duration: time.Second, Rate: 1000},
			{Duration: time.Second, Rate: 1000},
			{Duration: 2 * time.Second, Rate: 50},
		},
	},
	"down to 0": {Stages: []plan.Stage{{Duration: time.Second, Rate: 500}, {Duration: 2 * time.Second}}},
	"idle": {
		Stages: []plan.Stage{
			{Duration: time.Second, Rate: 100},
			{Duration: time.Second},
			{Duration: time.Second},
			{Duration: time.Second, Rate: 300},
		},
	},
	"first zero": {Stages: []plan.Stage{{Duration: time.Second}, {Duration: time.Second, Rate: 100}}},
}

func planOf(s plan.Shape, pods int) *plan.Plan { return &plan.Plan{Pods: pods, Shape: s} }

func TestPacerCountsAndDueTimesAgree(t *testing.T) {
	for name, shape := range shapes {
		for _, pods := range []int{1, 3} {
			var sum int64
			for pod := range pods {
				p := NewPacer(planOf(shape, pods), pod)
				length := int64(shape.Length())
				sum += p.Total
				last := int64(0)
				for i := range p.Total {
					due := p.Due(i)
					if due < last || due >= length {
						t.Fatalf("%s: arrival %d is due at %d, the one before at %d, the run ends at %d", name, i, due, last, length)
					}
					last = due
					// Rounding may move an arrival by a nanosecond or two, never more.
					if before, after := p.Arrivals(due-2), p.Arrivals(due+2); before > i || after < i+1 {
						t.Fatalf("%s: arrival %d is due at %d, but %d are before and %d after", name, i, due, before, after)
					}
				}
				if p.Due(p.Total) != math.MaxInt64 {
					t.Errorf("%s: there is an arrival after the last", name)
				}
			}
			// The integral of the rate, in whole arrivals.
			if want := plan.NewSchedule(shape).Integral(int64(shape.Length())); math.Abs(float64(sum)-want) > 1 {
				t.Errorf("%s over %d pods: %d arrivals, want %.1f", name, pods, sum, want)
			}
		}
	}
}

func TestPacerOfAConstantRateIsAGrid(t *testing.T) {
	p := NewPacer(planOf(plan.Shape{Rate: 1000, Duration: time.Minute}, 1), 0)
	for _, i := range []int64{0, 1, 999, 59_999} {
		if want := i*1_000_000 + 500_000; p.Due(i) != want {
			t.Errorf("arrival %d is due at %d, want %d", i, p.Due(i), want)
		}
	}
	if p.Total != 60_000 || p.meanGap(second) != 1_000_000 {
		t.Errorf("%d arrivals, %d ns between them", p.Total, p.meanGap(second))
	}
}

func TestPodsInterleave(t *testing.T) {
	shape := plan.Shape{Rate: 300, RampUp: time.Second, Duration: time.Second}
	whole := NewPacer(planOf(shape, 1), 0)
	for pod := range 4 {
		p := NewPacer(planOf(shape, 4), pod)
		for i := range p.Total {
			if want := whole.Due(i*4 + int64(pod)); p.Due(i) != want {
				t.Fatalf("pod %d arrival %d is due at %d, want %d", pod, i, p.Due(i), want)
			}
		}
	}
}

func TestRequestsAreSplitExactly(t *testing.T) {
	shape := plan.Shape{Rate: 100, Requests: 1003}
	var sum int64
	for pod := range 4 {
		p := NewPacer(planOf(shape, 4), pod)
		sum += p.Total
		if p.Due(p.Total-1) == math.MaxInt64 {
			t.Errorf("pod %d never sends its last request", pod)
		}
	}
	if sum != 1003 {
		t.Errorf("%d requests in all, want 1003", sum)
	}
	bounded := NewPacer(planOf(plan.Shape{Rate: 100, Requests: 1_000_000, Duration: time.Second}, 1), 0)
	if bounded.Total != 100 {
		t.Errorf("%d requests in a second at 100/s, want 100", bounded.Total)
	}
}

func TestEachUserBelongsToOneLoop(t *testing.T) {
	p := planOf(plan.Shape{Users: 103, RampUp: time.Second, Duration: time.Second}, 3)
	seen := map[int64]bool{}
	for pod := range 3 {
		for c := range 7 {
			d := NewUsers(&Work{Plan: p, Pod: pod}, int64(c), 7)
			last := int64(-1)
			for len(d.Idle) > 0 {
				turn := d.Idle.Pop()
				if turn.Due < last {
					t.Errorf("user %d is due at %d, after one that is due at %d", turn.User, turn.Due, last)
				}
				last = turn.Due
				if seen[turn.User] {
					t.Errorf("user %d is in two loops", turn.User)
				}
				seen[turn.User] = true
				if want := turn.User * second / 103; turn.Due < want || turn.Due > want+10 {
					t.Errorf("user %d becomes active at %d, want %d", turn.User, turn.Due, want)
				}
			}
		}
	}
	if len(seen) != 103 {
		t.Errorf("%d users, want 103", len(seen))
	}
}

func TestUsersTakeTurnsByDueTime(t *testing.T) {
	d := &Users{level: plan.NewSchedule(plan.Shape{Users: 100, Duration: time.Second})}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range int64(100) {
		d.Schedule(&Turn{User: i}, rng.Int64N(1000))
	}
	last := int64(0)
	for range 10_000 {
		turn := d.Idle.Pop()
		if turn.Due < last {
			t.Fatalf("due at %d after %d", turn.Due, last)
		}
		last = turn.Due
		d.Schedule(turn, last+rng.Int64N(1000))
	}
}

func TestBudgetIsSpentExactly(t *testing.T) {
	var b budget
	b.Left.Store(10)
	got := []int{b.Claim(4), b.Claim(4), b.Claim(4), b.Claim(4)}
	if got[0] != 4 || got[1] != 4 || got[2] != 2 || got[3] != 0 {
		t.Errorf("claims of 4 from 10: %v", got)
	}
	b.Left.Store(math.MaxInt64)
	if b.Claim(7) != 7 || b.Left.Load() != math.MaxInt64 {
		t.Error("an unlimited budget shrinks")
	}
}
