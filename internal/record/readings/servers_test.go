package readings

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthReadingsOfServersAreBounded: in a day, 6 servers are read 518,400 times. The first and the newest reading of
// each stay.
func TestTruthReadingsOfServersAreBounded(t *testing.T) {
	t.Parallel()
	var s Servers
	const seconds = 24 * 3600
	for i := range int64(seconds) {
		var readings []record.Server
		for k := range 6 {
			readings = append(readings, record.Server{At: i * 1e9, Address: fmt.Sprint("redis-", k), RunID: "r", EvictedKeys: i})
		}
		s.Add(readings)
	}
	kept := s.All()
	truth.Report(t, "T5", "readings kept of 6 servers after 24 h", "at most 4102", fmt.Sprint(len(kept)),
		len(kept) <= maxServerReadings+6)
	first, last := kept[0].EvictedKeys, kept[len(kept)-1].EvictedKeys
	truth.Report(t, "T5", "the counter's first and newest reading", fmt.Sprint("0 and ", seconds-1),
		fmt.Sprint(first, " and ", last), first == 0 && last == seconds-1)
}

// TestSlowCommandsSurviveThinning: of every command, the longest execution stays with its own time, and all are
// counted, in whichever order the readings come.
func TestSlowCommandsSurviveThinning(t *testing.T) {
	t.Parallel()
	const seconds = 5 * 3600
	slow := map[int64][]record.SlowCommand{
		1000: {
			{Command: "KEYS", Count: 2, WorstMicros: 90_000, At: 1000e9},
			{Command: "EVAL", Count: 1, WorstMicros: 80_000, At: 1000e9},
		},
		1001:        {{Command: "SORT", Count: 1, WorstMicros: 50_000, At: 1001e9}},
		1002:        {{Command: "KEYS", Count: 1, WorstMicros: 20_000, At: 1002e9}},
		seconds - 7: {{Command: "KEYS", Count: 1, WorstMicros: 30_000, At: (seconds - 7) * 1e9}},
	}
	want := []record.SlowCommand{
		{Command: "KEYS", Count: 4, WorstMicros: 90_000, At: 1000e9},
		{Command: "EVAL", Count: 1, WorstMicros: 80_000, At: 1000e9},
		{Command: "SORT", Count: 1, WorstMicros: 50_000, At: 1001e9},
	}
	for _, step := range []int64{1, -1} {
		var s Servers
		for i := range int64(seconds) {
			if step < 0 {
				i = seconds - 1 - i
			}
			s.Add([]record.Server{{At: i * 1e9, Address: "redis-0", RunID: "r", SlowLog: record.SlowLog{Commands: slow[i]}}})
		}
		var got []record.SlowCommand
		for _, r := range s.All() {
			got = record.MergeSlow(got, r.SlowLog.Commands)
		}
		if diff := cmp.Diff(want, got); diff != "" || s.step < 4*time.Second || len(s.All()) > maxServerReadings+1 {
			t.Errorf("%d readings kept, one per %v; their slow commands (-want +got):\n%s", len(s.All()), s.step, diff)
		}
	}
}

// TestManySlowCommandsAreBounded: servers on which hundreds of commands are slow all the time.
func TestManySlowCommandsAreBounded(t *testing.T) {
	t.Parallel()
	var s Servers
	for i := range int64(400) {
		var readings []record.Server
		for k := range int64(20) {
			slow := record.SlowCommand{Command: fmt.Sprint((i + k) % 300), Count: 1, WorstMicros: 1 + i, At: i * 1e9}
			readings = append(readings, record.Server{
				At:      i * 1e9,
				Address: fmt.Sprint("redis-", k),
				RunID:   "r",
				SlowLog: record.SlowLog{Commands: []record.SlowCommand{slow}},
			})
		}
		s.Add(readings)
	}
	s.Thin(64 * time.Second)
	kept := s.All()
	for _, r := range kept {
		if n := len(r.SlowLog.Commands); n > record.MaxSlowCommands || n == 0 {
			t.Errorf("%d commands at %v", n, time.Duration(r.At))
		}
	}
	if n := len(kept); n > 20*(1+7) {
		t.Errorf("%d readings", n)
	}
}

// TestThinningLeavesTheOriginal: a series is encoded with a thinned copy that shares its readings.
func TestThinningLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	var s Servers
	for i := range int64(10) {
		s.Add([]record.Server{
			{
				At:      i * 1e9,
				Address: "a",
				RunID:   "r",
				SlowLog: record.SlowLog{Commands: []record.SlowCommand{{Command: "KEYS", Count: 1, WorstMicros: i, At: i * 1e9}}},
			},
		})
	}
	before := s.All()
	thinned := s.Copy()
	thinned.Thin(8 * time.Second)
	if diff := cmp.Diff(before, s.All()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
