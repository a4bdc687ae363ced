package main

import "testing"

// A cell whose runs are all in doubt has no figure. The entry ran, and the table says so.
func TestFigureOfARunInDoubt(t *testing.T) {
	r := &report{Doubts: []struct{ Reason, Of, Message string }{
		{
			"TooManyInconclusive", "replicas=4,spread=100",
			"1 of 1 run in doubt; the last one: load pod 0 did not run for 1.81s of the measured time",
		},
	}}
	for name, value := range map[string]func(*report) (string, error){
		"change": change("throughput", "replicas=4"), "figure": figure("outage", "replicas=4,spread=100"),
	} {
		if text, err := value(r); err != nil || text != "in no figure: 1 of 1 run in doubt" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := change("throughput", "replicas=2")(r); err == nil {
		t.Errorf("a cell that the report does not know has the value %q", text)
	}
}
