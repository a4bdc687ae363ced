package plan

import (
	"testing"
	"time"
)

func TestPlanned(t *testing.T) {
	if c := (Shape{Rate: 100, RampUp: time.Second}).Planned(); c.Mean != nil {
		t.Error("a rate that is constant after its ramp-up has a plan over time")
	}
	stages := Shape{ThinkTime: time.Second, Stages: []Stage{{Duration: 10 * time.Second, Users: 100}, {Duration: 10 * time.Second, Users: 50}}}
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
