package result

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// The figures of a fault are those of its impact, not of a part.
func TestFiguresOfAFault(t *testing.T) {
	longest := impact.Outage{Bounded: durations.Exactly(50 * time.Second), Of: impact.Shard, Shard: 2}
	deepest := impact.Dip{Value: 0.5, Of: impact.Writes}
	f := NewFault(&impact.Impact{
		Outage:  longest,
		Outages: impact.Outages{Load: durations.Exactly(time.Second)},
		Dip:     deepest,
		Dips:    impact.Dips{All: 0.1, Writes: 0.5},
	}, FaultInput{})
	if f.Outage() != longest || f.Dip() != deepest {
		t.Errorf("%+v, %+v", f.Outage(), f.Dip())
	}
}

func TestRecovery(t *testing.T) {
	if took, ok := NewFault(&impact.Impact{RecoveryTime: durations.Exactly(-1)}, FaultInput{}).Recovery(); ok ||
		took != durations.Exactly(0) {
		t.Errorf("%+v, %v", took, ok)
	}
	if took, ok := NewFault(&impact.Impact{Recovered: true, RecoveryTime: durations.Exactly(time.Second)},
		FaultInput{}).Recovery(); !ok || took != durations.Exactly(time.Second) {
		t.Errorf("%+v, %v", took, ok)
	}
	unknown := NewFault(&impact.Impact{RecoveryTime: durations.Bounded{Value: -1, AtLeast: time.Second, AtMost: -1}},
		FaultInput{})
	if _, ok := unknown.Recovery(); ok || unknown.RecoveryAtLeast == nil ||
		*unknown.RecoveryAtLeast != Seconds(time.Second) {
		t.Errorf("%+v", unknown)
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

// A loss is of the fault in whose time the writes were lost. Three of all losses may be evictions.
func TestLossesOf(t *testing.T) {
	const second = int64(time.Second)
	at := func(from, to int) summary.Window {
		return summary.Window{From: time.Duration(from) * time.Second, To: time.Duration(to) * time.Second}
	}
	acted := []summary.Window{at(10, 25), {From: -1}, at(30, 45), at(40, 60)}
	loss := func(first, after, until int64, count uint64) record.Loss {
		return record.Loss{
			First: first * second,
			Last:  after*second + second/2,
			After: after * second,
			Until: until * second,
			Count: count,
		}
	}
	exactly, atMost := func(n uint64) Count { return Count{n, n} }, func(n uint64) Count { return Count{0, n} }
	for name, c := range map[string]struct {
		loss record.Loss
		want map[int]Count
	}{
		"before any fault":    {loss(5, 6, 7, 1), nil},
		"until the first one": {loss(1, 9, 11, 20), map[int]Count{0: exactly(20)}},
		"in its time":         {loss(11, 12, 13, 3), map[int]Count{0: exactly(3)}},
		"all until the third, which is much later than the first": {loss(1, 29, 31, 30), map[int]Count{2: exactly(30)}},
		"in the time of two":                         {loss(41, 42, 43, 4), map[int]Count{2: atMost(4), 3: atMost(4)}},
		"between the injections of two that overlap": {loss(31, 38, 39, 4), map[int]Count{2: exactly(4)}},
		"after it had settled, before the next":      {loss(1, 26, 28, 5), map[int]Count{0: atMost(5)}},
		"after all had settled":                      {loss(1, 70, 0, 5), map[int]Count{3: atMost(5)}},
		"and nothing was kept":                       {loss(1, 44, 0, 5), map[int]Count{2: atMost(5), 3: atMost(5)}},
	} {
		for i := range acted {
			got := LossesOf(i, acted, []record.Loss{c.loss}, exactly(c.loss.Count)).Count
			if got != c.want[i] {
				t.Errorf("%s: of fault %d %v, want %v", name, i, got, c.want[i])
			}
		}
	}
	both := LossesOf(0, acted, []record.Loss{loss(9, 9, 11, 2), loss(20, 21, 22, 3), loss(29, 29, 31, 4)}, Count{
		AtLeast: 6,
		AtMost:  9,
	})
	want := &Losses{Count: Count{AtLeast: 2, AtMost: 5}, First: 9 * time.Second, Last: 21*time.Second + time.Second/2}
	if diff := cmp.Diff(want, both); diff != "" {
		t.Error(diff)
	}
}
