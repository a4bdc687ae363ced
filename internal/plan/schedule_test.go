package plan_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

const second = int64(time.Second)

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

func TestWhenIntegralInvertsIntegral(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, shape := range shapes {
		s := plan.NewSchedule(shape)
		for range 1000 {
			at := rng.Int64N(int64(shape.Length()))
			if s.Level(at) < 1e-3 {
				continue // the integral is constant while nothing arrives
			}
			a := s.Integral(at)
			// A relative error of 10^-14 of the integral moves the instant by that error divided by the rate.
			tolerance := 2 + int64(1e9*1e-12*(1+a)/s.Level(at))
			if back := s.WhenIntegral(a); back < at-tolerance || back > at+tolerance {
				t.Errorf("%s: the integral at %d is %.3f, reached at %d", name, at, a, back)
			}
		}
	}
}

func TestScheduleOfUsers(t *testing.T) {
	ramp := plan.NewSchedule(plan.Shape{Users: 10, RampUp: 10 * time.Second, Duration: time.Second})
	stages := plan.NewSchedule(plan.Shape{
		Stages: []plan.Stage{
			{Duration: 10 * time.Second, Users: 10},
			{Duration: 10 * time.Second, Users: 0},
			{Duration: 10 * time.Second, Users: 5},
		},
	})
	tests := []struct {
		name     string
		s        plan.Schedule
		user, at int64
		want     int64 // -1 = never again
	}{
		{"the first user of a ramp", ramp, 0, 0, 0},
		{"the fifth", ramp, 4, 0, 4 * second},
		{"the last", ramp, 9, 0, 9 * second},
		{"one too many", ramp, 10, 0, -1},
		{"already active", ramp, 4, 7 * second, 7 * second},
		{"active until its stage ends", stages, 4, 15*second - 1000, 15*second - 1000},
		{"again later", stages, 4, 16 * second, 28 * second},
		{"not again", stages, 7, 16 * second, -1},
	}
	for _, tt := range tests {
		got := tt.s.WhenAbove(float64(tt.user), tt.at)
		want := tt.want
		if want < 0 {
			want = math.MaxInt64
		}
		if got < want || want != math.MaxInt64 && got > want+10 {
			t.Errorf("%s: active at %d, want %d", tt.name, got, want)
		}
		if got < math.MaxInt64 && tt.s.Level(got) <= float64(tt.user) {
			t.Errorf("%s: at %d the level is %f, not above %d", tt.name, got, tt.s.Level(got), tt.user)
		}
	}
	if stages.Peak() != 10 {
		t.Errorf("the peak is %f, want 10", stages.Peak())
	}
}
