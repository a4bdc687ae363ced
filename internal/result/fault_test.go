package result

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
)

// The figures of a fault are those of its impact, not of a part.
func TestFiguresOfAFault(t *testing.T) {
	longest, deepest := impact.Outage{Bounded: impact.Exactly(50 * time.Second), Of: impact.Shard, Shard: 2}, impact.Dip{Value: 0.5, Of: impact.Writes}
	f := &Fault{Impact: impact.Impact{
		Outage: longest, Outages: impact.Outages{Load: impact.Exactly(time.Second)}, Dip: deepest, Dips: impact.Dips{All: 0.1, Writes: 0.5},
	}}
	if f.Outage() != longest || f.Dip() != deepest {
		t.Errorf("%+v, %+v", f.Outage(), f.Dip())
	}
}

func TestRecovery(t *testing.T) {
	if took, ok := (&Fault{Impact: impact.Impact{RecoveryTime: impact.Exactly(-1)}}).Recovery(); ok || took != impact.Exactly(0) {
		t.Errorf("%+v, %v", took, ok)
	}
	if took, ok := (&Fault{Impact: impact.Impact{Recovered: true, RecoveryTime: impact.Exactly(time.Second)}}).Recovery(); !ok || took != impact.Exactly(time.Second) {
		t.Errorf("%+v, %v", took, ok)
	}
}

func TestDoubtIsAddedOnce(t *testing.T) {
	f := &Fault{}
	f.Doubt(impact.Doubt{Reason: "A", Message: "first"})
	f.Doubt(impact.Doubt{Reason: "A", Message: "second"})
	f.Doubt(impact.Doubt{Reason: "B"})
	if len(f.Doubts) != 2 || f.Doubts[0].Message != "first" {
		t.Errorf("%+v", f.Doubts)
	}
}

// A loss is attributed to the last fault that was injected before its end, or within a second after it. Three of all losses may be evictions.
func TestLossesOf(t *testing.T) {
	const second = int64(time.Second)
	injected := []time.Duration{10 * time.Second, -1, 30 * time.Second}
	losses := []record.Loss{
		{First: 5 * second, Last: 6 * second, Count: 1},                     // before any fault
		{First: 9 * second, Last: 9*second + second/2, Count: 2, Errors: 1}, // servers fail before clients observe it
		{First: 20 * second, Last: 21 * second, Count: 3},                   // long after the first, before the third
		{First: 29 * second, Last: 31 * second, Count: 4, Errors: 2},        // across the third
	}
	for i, want := range []*Losses{
		{Count: Count{AtLeast: 2, AtMost: 5}, First: 9 * time.Second, Last: 21 * time.Second, Errors: 1},
		{},
		{Count: Count{AtLeast: 1, AtMost: 4}, First: 29 * time.Second, Last: 31 * time.Second, Errors: 2},
	} {
		if diff := cmp.Diff(want, LossesOf(i, injected, losses, Count{AtLeast: 7, AtMost: 10})); diff != "" {
			t.Errorf("fault %d:\n%s", i, diff)
		}
	}
}
