package plan

import (
	"testing"
	"time"
)

func TestTurns(t *testing.T) {
	p := &Plan{
		Shape: Shape{Users: 1, RampUp: time.Second, WarmUp: time.Second, Duration: 30 * time.Second},
		Workload: Workload{
			Benchmark: &Benchmark{Tests: []string{"set", "get", "incr"}, Order: InTurn, Each: 10 * time.Second},
		},
	}
	turns := p.Turns()
	for at, want := range map[time.Duration]int{
		0:                  0,
		11 * time.Second:   0,
		12 * time.Second:   1,
		22*time.Second - 1: 1,
		22 * time.Second:   2,
		time.Hour:          2,
	} {
		if got := turns.At(at, 0, 0); got != want {
			t.Errorf("at %v: turn %d, want %d", at, got, want)
		}
	}
	for k, want := range [][2]time.Duration{
		{2 * time.Second, 12 * time.Second},
		{12 * time.Second, 22 * time.Second},
		{22 * time.Second, 40 * time.Second},
	} {
		if from, to := turns.Window(k, 40*time.Second); from != want[0] || to != want[1] {
			t.Errorf("turn %d from %v to %v, want %v", k, from, to, want)
		}
	}
	if from, to := turns.Window(1, 5*time.Second); from != to {
		t.Errorf("a load that ended at 5 s had turn 1 from %v to %v", from, to)
	}
	p.Workload.Benchmark.Each = 0
	counts := make([]int, 3)
	for i := range int64(10) {
		counts[p.Turns().At(0, i, 10)]++
	}
	if counts[0] != 4 || counts[1] != 3 || counts[2] != 3 || p.Turns().At(0, 10, 10) != 2 || p.Turns().At(0, -1, 10) != 0 {
		t.Errorf("of ten requests the turns have %v", counts)
	}
}

func TestNoTurns(t *testing.T) {
	for name, w := range map[string]Workload{
		"commands": {Commands: []Command{{Name: "a"}, {Name: "b"}}},
		"mixed":    {Benchmark: &Benchmark{Tests: []string{"set", "get"}, Order: Mixed}},
		"one test": {Benchmark: &Benchmark{Tests: []string{"set"}, Order: InTurn}},
	} {
		if (&Plan{Workload: w}).Turns() != nil {
			t.Errorf("%s: has turns", name)
		}
	}
}
