package plan

import (
	"slices"
	"testing"
	"time"
)

func TestPlanned(t *testing.T) {
	if c := (Shape{Rate: 100, RampUp: time.Second}).Planned(); c.Mean != nil {
		t.Error("a rate that is constant after its ramp-up has a plan over time")
	}
	stages := Shape{
		ThinkTime: time.Second,
		Stages:    []Stage{{Duration: 10 * time.Second, Users: 100}, {Duration: 10 * time.Second, Users: 50}},
	}
	c := stages.Planned()
	if got := c.Mean(10*time.Second, 20*time.Second); got != 75 || c.Rate || c.ThinkTime != time.Second {
		t.Errorf("mean %v, planned %+v", got, c)
	}
	for i := range stages.Stages {
		stages.Stages[i].Users, stages.Stages[i].Rate = 0, float64(stages.Stages[i].Users)
	}
	if c := stages.Planned(); !c.Rate || c.Mean(5*time.Second, 5*time.Second+time.Millisecond) < 50 {
		t.Errorf("planned %+v", c)
	}
}

// In a closed loop, each test of a benchmark has another throughput.
func TestPlannedBenchmark(t *testing.T) {
	p := &Plan{
		Shape: Shape{Users: 5, WarmUp: 10 * time.Second, Duration: 90 * time.Second},
		Workload: Workload{Benchmark: &Benchmark{
			Tests: []string{"set", "get", "incr"}, Order: InTurn, Each: 30 * time.Second,
		}},
	}
	want := []time.Duration{40 * time.Second, 70 * time.Second}
	planned := p.Planned()
	if !slices.Equal(planned.Changes, want) || planned.Since(39*time.Second) != 0 ||
		planned.Since(69*time.Second) != want[0] || planned.Since(time.Hour) != want[1] {
		t.Errorf("the load changes at %v, want %v", planned.Changes, want)
	}
	p.Shape.Rate = 100
	if c := p.Planned(); c.Changes != nil || !c.InTurn {
		t.Errorf("a rate changes at %v, in turn: %t", c.Changes, c.InTurn)
	}
	p.Workload.Benchmark.Order = ""
	if p.Planned().InTurn {
		t.Error("operations that are mixed are sent in turn")
	}
}
