package document

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/result"
)

// aFault is a result that has all that one can have.
func aFault(name string, at time.Duration) *result.Fault {
	latency := summary.Latency{
		P50: time.Millisecond, P90: 2 * time.Millisecond, P99: 3 * time.Millisecond, P999: 4 * time.Millisecond,
		Max: 5 * time.Millisecond, Mean: 1500 * time.Microsecond, Count: 9,
	}
	three := durations.Bounded{Value: 3 * time.Second, AtLeast: 2980 * time.Millisecond, AtMost: 3010123456}
	failures := impact.Failures{FirstError: time.Millisecond, LastError: -1, Errors: 7}
	start := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	f := result.NewFault(&impact.Impact{
		BaselineRate: 100.0 / 3,
		MinRate:      0,
		TimeToImpact: three,
		Outage:       impact.Outage{Bounded: three, Of: impact.Shard, Shard: 2},
		Outages: impact.Outages{
			Load:   durations.Exactly(time.Second),
			Reads:  durations.Exactly(-1),
			Writes: three,
			Shard:  impact.ShardOutage{Bounded: three, Shard: 2},
			Probe:  three,
		},
		Dip:                 impact.Dip{Value: 0.75, Of: impact.Writes},
		Dips:                impact.Dips{All: 0.5, Reads: math.NaN(), Writes: 0.75},
		TotalOutage:         three,
		ErrorWindow:         time.Second,
		Recovered:           true,
		RecoveryTime:        three,
		RecoveredThroughput: 1,
		LostRequests:        12.5,
		Errors:              7,
		Before:              latency,
		After:               latency,
		WhileActive: &impact.WhileActive{
			Length: time.Second, Throughput: 5, Change: -0.25, Latency: latency, LatencyP50Change: math.NaN(),
			LatencyP99Change: math.Inf(1), ErrorRate: 0.5,
		},
		Reads:      &failures,
		Operations: []impact.Effect{{Name: "set", Outage: three, Dip: math.NaN(), Failures: failures}},
		Doubts:     []impact.Doubt{{Reason: "A", Message: "first"}, {Reason: "A", Message: "second"}},
	}, result.FaultInput{
		Name:       name,
		UID:        "u-" + name,
		Type:       "PodKill",
		Targets:    []string{"redis-0"},
		Start:      start,
		At:         at,
		InjectedAt: start.Add(at),
		Deadline:   time.Minute,
	})
	f.Phases = []result.Phase{{
		Name:   "Ready",
		Source: "Kubernetes",
		At:     result.Seconds(time.Second),
		Took:   result.Bounds(three),
	}}
	return f
}

// What is kept of a fault is read as it was; a completed result replaces the earlier one, and those of an earlier load
// are dropped.
func TestFaultsAreKept(t *testing.T) {
	const limit = 24 << 10
	first, second := aFault("first", 10*time.Second), aFault("second", 20*time.Second)
	old := aFault("first", 15*time.Second)
	old.Start = old.Start.Add(-time.Hour)
	var kept []byte
	keep := func(f *result.Fault) {
		t.Helper()
		var err error
		if kept, err = KeepFault(kept, f, limit); err != nil {
			t.Fatal(err)
		}
	}
	keep(old)
	keep(second)
	keep(first)
	lost := &result.Losses{
		Count: result.Count{AtLeast: 2, AtMost: 5},
		First: 9 * time.Second,
		Last:  11 * time.Second,
	}
	first.Conclude(lost,
		[]result.Objective{{Name: "maxLostWrites", Unit: result.UnitCount, Limit: 1, Met: new(false)}}, "Fail", "because")
	keep(first)
	got, err := KeptFaults(kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]result.Fault{*first, *second}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-given +kept:\n%s", diff)
	}
	if f := result.FaultWith(got, "u-first", "first"); f == nil || f.LostWrites().String() != "2-5" ||
		*f.Lost.First != -result.Seconds(time.Second) {
		t.Errorf("%+v", f)
	}
	if result.FaultWith(got, "another", "first") != nil {
		t.Error("a fault of the same name has the result of another")
	}
	first.Conclude(nil, []result.Objective{{Name: "maxLostWrites"}}, "Inconclusive", "")
	if len(first.Objectives) != 1 || first.Lost != nil {
		t.Errorf("concluded again: %+v", first)
	}
}

// Results that do not fit, or are of another version, are refused, and nothing of what is kept is lost.
func TestFaultsThatAreNotKept(t *testing.T) {
	kept, err := KeepFault(nil, aFault("first", time.Second), 24<<10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := KeepFault(kept, aFault("second", time.Minute), len(kept)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
	other := aFault("first", time.Second)
	other.Version = 9
	if kept, err = KeepFault(nil, other, 24<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := KeptFaults(kept); err == nil {
		t.Error("another version is read")
	}
	if _, err := KeptFaults([]byte("{}")); err == nil {
		t.Error("what is not compressed is read")
	}
}

// The room that a ConfigMap has is enough for many faults.
func TestRoomForFaults(t *testing.T) {
	var kept []byte
	for i := range 32 {
		f := aFault(string(rune('a'+i)), time.Duration(i)*time.Minute+time.Duration(i*i*7919))
		f.Errors, f.LostRequests = uint64(i*104729), uint64(i*i*1299709)
		for k := range 8 {
			f.Operations = append(f.Operations, result.OperationHit{
				Name:     "op",
				Outage:   result.Bounds(durations.Exactly(time.Duration(i*k) * 15485863)),
				Failures: result.Failures{Errors: uint64(i * k)},
			})
		}
		var err error
		if kept, err = KeepFault(kept, f, 24<<10); err != nil {
			t.Fatal(err)
		}
	}
}

// A short result takes less room, and has the same headline figures.
func TestShortFault(t *testing.T) {
	f := aFault("first", time.Second)
	for i := range 100 {
		f.Targets = append(f.Targets, fmt.Sprintf("redis-%d", i))
		f.Operations = append(f.Operations, result.OperationHit{Name: fmt.Sprintf("op%d", i)})
	}
	whole, err := KeepFault(nil, f, 24<<10)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := KeepFault(nil, ShortFault(f), len(whole)-1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := KeptFaults(kept)
	if err != nil || len(all) != 1 || len(all[0].Operations) > 0 || len(all[0].Targets) != maxListed ||
		all[0].Outage() != f.Outage() || len(f.Operations) < 100 {
		t.Errorf("%v, %+v", err, all)
	}
}
