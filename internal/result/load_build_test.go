package result

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// recorded is a record of seconds intervals of 1 s, of two operations: each has ok successes of 1 ms per second, and
// none while down.
func recorded(t *testing.T, seconds, ok int, down func(second int) bool) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"set", "get"}, 1)
	for i := range seconds {
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 2), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		begin := int64(i) * int64(time.Second)
		for k := range iv.Ops {
			op := &iv.Ops[k]
			if down(i) {
				op.Sent, op.Unknown, op.Dropped = 10, 10, 5
				op.Errors[record.ClassTimeout], op.Errors[record.ClassReset] = 2, 8
				iv.FirstError, iv.LastError = begin, begin+int64(time.Second)-1
				continue
			}
			op.Sent, op.OK = uint64(ok), uint64(ok)
			var h histogram.Histogram
			for range ok {
				h.Record(int64(time.Millisecond))
			}
			op.Latency = h.AppendTo(nil)
			iv.FirstOK, iv.LastOK = begin, begin+int64(time.Second)-1
		}
		iv.Servers = []record.Server{{
			At: begin, Address: "a:1", RunID: "r", Name: "valkey", Version: "8.0", Mode: "standalone", Role: "master",
			CPUSeconds: float64(i) / 2, UsedMemory: int64(i) << 20,
		}}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

func TestNewLoad(t *testing.T) {
	plan := &plan.Plan{
		Pods: 1, Target: plan.Target{Addresses: []string{"a:1"}},
		Shape: plan.Shape{Rate: 200, WarmUp: 10 * time.Second, Duration: 20 * time.Second},
	}
	r := NewLoad(plan, recorded(t, 30, 100, func(i int) bool {
		return i == 5 || i == 20 ||
			i == 21
	}), LoadInput{Outcome: Finished})
	sec := func(n int) Seconds { return Seconds(time.Duration(n) * time.Second) }
	if r.Elapsed != sec(30) || r.Planned != sec(30) || r.Measured != sec(20) || r.Outcome != Finished {
		t.Errorf("outcome %s, elapsed %v, planned %v, measured %v; want Finished, 30 s, 30 s, 20 s", r.Outcome, r.Elapsed,
			r.Planned, r.Measured)
	}
	if want := (Target{
		Addresses: []string{"a:1"},
		Topology:  "Standalone",
		Server:    "valkey",
		Version:   "8.0",
		Servers:   []Server{{Address: "a:1", Role: "primary"}},
	}); !cmp.Equal(r.Target, want) {
		t.Errorf("the target is %+v", r.Target)
	}
	// 18 seconds with 2 x 100 successes, 2 seconds with 2 x (10 unknown + 5 dropped).
	if r.Total.Requests != 3660 || r.Total.OK != 3600 || r.Total.Unknown != 40 || r.Total.Dropped != 20 ||
		r.Total.Throughput != 180 {
		t.Errorf("the total is %+v", r.Total)
	}
	if len(r.Operations) != 2 || r.Operations[1].Name != "get" || r.Operations[1].OK != 1800 {
		t.Errorf("the operations are %+v", r.Operations)
	}
	if p99 := time.Duration(r.Total.Latency.P99); p99 < 990*time.Microsecond || p99 > 1010*time.Microsecond ||
		r.Total.Service != nil {
		t.Errorf("p99 is %v and service %v, want 1 ms within 1 %% and none", p99, r.Total.Service)
	}
	if want := []ErrorCount{{Class: "reset", Count: 32}, {Class: "timeout", Count: 8}}; !cmp.Equal(r.Errors, want) {
		t.Errorf("errors are %v, want %v", r.Errors, want)
	}
	if r.Latency != ResponseTime || r.Shape != "open loop, 200 requests/s" {
		t.Errorf("latency from %s, load %q", r.Latency, r.Shape)
	}
	if len(r.Anomalies) != 1 || r.Anomalies[0].At != sec(20) || r.Anomalies[0].Length != sec(2) ||
		r.Anomalies[0].Dip != 1 {
		t.Errorf("anomalies are %+v, want one at 20 s for 2 s of 100 %%", r.Anomalies)
	}
	if r.Redis == nil || r.Redis.MaxCPU != 500 || r.Redis.MaxMemory != 29<<20 {
		t.Errorf("redis is %+v, want 500m and 29Mi", r.Redis)
	}
	if r.Bottleneck == nil || r.Bottleneck.Component != "None" ||
		!strings.Contains(r.Bottleneck.Evidence, "nothing was at its limit: Redis' main thread was 50% busy") {
		t.Errorf("the bottleneck is %+v", r.Bottleneck)
	}
}

func TestNewLoadOutcome(t *testing.T) {
	plan := &plan.Plan{Pods: 1, Shape: plan.Shape{Users: 1, Duration: 3 * time.Second}}
	always, never := func(int) bool { return true }, func(int) bool { return false }
	tests := []struct {
		name    string
		series  *merged.Series
		given   Outcome
		want    Outcome
		message string
	}{
		{"good", recorded(t, 3, 1, never), Finished, Finished, ""},
		{"dead", recorded(t, 3, 1, always), Finished, Failed, "no request succeeded"},
		{"nothing", recorded(t, 0, 1, never), Finished, Failed, "no request was made in the measured time"},
		{"interrupted at once", recorded(t, 0, 1, never), Interrupted, Interrupted, ""},
	}
	for _, tt := range tests {
		if r := NewLoad(plan, tt.series, LoadInput{Outcome: tt.given}); r.Outcome != tt.want || r.Message != tt.message {
			t.Errorf("%s: %s %q, want %s %q", tt.name, r.Outcome, r.Message, tt.want, tt.message)
		}
	}
}

// A result doubts its own figures if the load generator limited them, or if its search was cut off.
func TestDoubtsOfALoad(t *testing.T) {
	limitedBy := func(component bottleneck.Component) *Load {
		return &Load{Bottleneck: &Bottleneck{Component: string(component), Evidence: "95%"}}
	}
	for name, tt := range map[string]struct {
		result *Load
		want   []impact.Doubt
	}{
		"nothing": {&Load{Search: &Search{Done: true}}, nil},
		"a saturated generator": {
			limitedBy(bottleneck.LoadGenerator),
			[]impact.Doubt{{Reason: "LoadGeneratorSaturated", Message: "the load generator was the bottleneck: 95%"}},
		},
		"a stalled generator": {
			&Load{Bottleneck: &Bottleneck{Component: string(bottleneck.LoadGenerator), Stalled: true}},
			nil,
		},
		"another bottleneck": {limitedBy(bottleneck.Network), nil},
		"a search cut off": {
			&Load{Search: &Search{Message: "too short"}},
			[]impact.Doubt{{Reason: "SearchUnfinished", Message: "the search did not complete: too short"}},
		},
		"a few redirections": {&Load{Total: Operation{Requests: 1000, Redirected: 10}}, nil},
		"redirections": {
			&Load{Total: Operation{Requests: 1000, Redirected: 11}},
			[]impact.Doubt{{Reason: "Redirected", Message: "nodes answered MOVED or ASK 11 times for 1000 requests, which " +
				"were sent again: their latency is that of several round trips; slots were moving, or the nodes did not say " +
				"which words of a command are its keys (COMMAND GETKEYS)"}},
		},
		"redirections without a request": {&Load{}, nil},
	} {
		tt.result.doubt()
		if diff := cmp.Diff(tt.want, tt.result.Doubts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLongestGap(t *testing.T) {
	gap := func(from, to int64, atLeast, atMost time.Duration) gaps.Bounded {
		return gaps.Bounded{
			Gap:    record.Gap{From: from, To: to},
			Length: durations.Bounded{Value: time.Duration(to - from), AtLeast: atLeast, AtMost: atMost},
		}
	}
	list := []gaps.Bounded{gap(0, 90, 90, 90), gap(100, 120, 20, 50), gap(200, 240, 10, 45)}
	list[2].Open = true
	if got, want := longest(list, 95,
		240), (&Gap{At: 200, Length: 40, AtLeast: 20, AtMost: 50, Open: true}); !cmp.Equal(got, want) {
		t.Errorf("after the warm-up: %+v, want %+v with the greatest bounds", got, want)
	}
	if got := longest(list[:1], 95, 240); got != nil {
		t.Errorf("only in the warm-up: %+v, want none", got)
	}
	if got := longest(list[2:], 95, 200); got != nil {
		t.Errorf("only after the end of the load: %+v, want none", got)
	}
}

// The gap of writes or reads is the longest of the load only where it is provably longer.
func TestWorstGap(t *testing.T) {
	load := &Gap{Length: 40}
	same := &Gap{Length: 50, AtLeast: 40}
	longer := &Gap{Length: 50, AtLeast: 45}
	longest := &Gap{Length: 60, AtLeast: 45}
	for _, tt := range []struct {
		name                string
		load, writes, reads *Gap
		want                *Gap
		of                  string
	}{
		{"nothing", nil, nil, nil, nil, ""},
		{"the load", load, nil, nil, load, ""},
		{"a little longer, as every part is", load, same, same, load, ""},
		{"writes", load, longer, same, longer, "Writes"},
		{"reads, while writes succeed", nil, nil, longer, longer, "Reads"},
		{"both, one after the other", load, longer, longest, longest, "Reads"},
	} {
		got := worst(tt.load, tt.writes, tt.reads)
		if (got == nil) != (tt.want == nil) || got != nil && (got.Length != tt.want.Length || got.Of != tt.of) {
			t.Errorf("%s: %+v, want %+v of %s", tt.name, got, tt.want, tt.of)
		}
	}
}

// If a number of requests ends the run, its rate counts the time until the last request, not the rest of the interval.
func TestRateOfARunThatItsRequestsEnd(t *testing.T) {
	series := merged.New("run", time.Unix(0, 0), 100*time.Millisecond, []string{"incr"}, 1)
	for i := range int64(10) {
		begin := i * int64(100*time.Millisecond)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(99*time.Millisecond),
		}
		iv.Ops[0].OK = 100
		if i == 9 {
			iv.Ops[0].OK, iv.LastOK = 20, begin+int64(20*time.Millisecond)
		}
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	r := NewLoad(&plan.Plan{Pods: 1, Shape: plan.Shape{Users: 5, Requests: 920}}, series, LoadInput{Outcome: Finished})
	if r.Total.Requests != 920 || r.Total.Throughput != 1000 || r.Measured != r.Elapsed ||
		r.Elapsed != Seconds(920*time.Millisecond) {
		t.Errorf("%d requests, %v/s in %v of %v; want 920 in 0.92 s", r.Total.Requests, r.Total.Throughput, r.Measured,
			r.Elapsed)
	}
}

// The gap of one shard is reported though the others had none.
func TestLongestShardGap(t *testing.T) {
	series := merged.New("run", time.Unix(0, 0), time.Second, []string{"set"}, 1)
	for i := range int64(10) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(time.Second) - 1,
		}
		iv.Ops[0].OK = 10
		iv.Shards = []record.ShardCounts{{OK: 5}, {OK: 5}}
		if i == 4 || i == 5 {
			iv.Shards[1] = record.ShardCounts{Errors: 5}
		}
		if i == 6 {
			iv.ShardGaps = []record.ShardGap{
				// shorter, but perhaps not
				{Shard: 0, Gap: record.Gap{From: 4_000_000_000, To: 6_300_000_000, MaybeBefore: 700_000_000}},
				{Shard: 1, Gap: record.Gap{From: 3_900_000_000, To: 6_300_000_000}},
			}
		}
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	r := NewLoad(&plan.Plan{Pods: 1, Shape: plan.Shape{Users: 5, Duration: 10 * time.Second}}, series, LoadInput{
		Outcome: Finished,
	})
	length := Seconds(2400 * time.Millisecond)
	// a mean time between successes of the load, and of the shard, in the other 6 s
	usual := Seconds(100+200) * Seconds(time.Millisecond)
	want := &ShardGap{
		Shard: 1,
		Gap: Gap{
			At:      Seconds(3900 * time.Millisecond),
			Length:  length,
			AtLeast: length - usual,
			AtMost:  Seconds(3 * time.Second),
		},
	}
	shards := []Shard{
		{
			Shard:      0,
			OK:         50,
			Throughput: 5,
			LongestGap: length - Seconds(100*time.Millisecond),
			AtLeast:    length - usual - Seconds(100*time.Millisecond),
			AtMost:     Seconds(3 * time.Second),
		},
		{Shard: 1, OK: 40, Errors: 10, Throughput: 4, LongestGap: length, AtLeast: length - usual, AtMost: length},
	}
	if diff := cmp.Diff(shards, r.Shards); diff != "" {
		t.Errorf("shards:\n%s", diff)
	}
	if !cmp.Equal(r.LongestShardGap, want) || r.LongestGap != nil {
		t.Errorf("the shard's gap is %+v, the load's %+v; want %+v and none", r.LongestShardGap, r.LongestGap, want)
	}
	alone := &Load{} // what the record alone shows
	alone.SetGaps(series, 0, series.End())
	if !cmp.Equal(alone.LongestShardGap, want) || alone.Outage().Of != impact.Shard {
		t.Errorf("the record alone has %+v", alone.LongestShardGap)
	}
}

// The tallies of a workload are shown as figures, for example a hit ratio.
func TestWorkloadFigures(t *testing.T) {
	plan := &plan.Plan{
		Pods:     1,
		Shape:    plan.Shape{Users: 5, Duration: 2 * time.Second},
		Workload: plan.Workload{CacheAside: &plan.CacheAside{}},
	}
	series := merged.New("run", time.Unix(0, 0), time.Second, []string{"read"}, 1)
	series.SetTallies(plan.Tallies())
	series.SetReadOnly(plan.ReadOnly())
	for i := range int64(2) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index:      i,
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstError: -1,
			LastError:  -1,
			FirstOK:    begin,
			LastOK:     begin,
			Tallies:    []uint64{9, 1, 5000, 3000},
		}
		iv.Ops[0].OK = 10
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	r := NewLoad(plan, series, LoadInput{Outcome: Finished})
	var found bool
	for _, f := range r.Workload {
		found = found || f.Name == "hitRatio" && f.Share != nil && *f.Share == 0.9
	}
	if !found {
		t.Errorf("no hit ratio of 0.9 in %+v", r.Workload)
	}
}

// Figures outside of faults omit the intervals that overlap a fault's window, and their time.
func TestFiguresOutsideOfFaults(t *testing.T) {
	p := &plan.Plan{Pods: 1, Shape: plan.Shape{Users: 1, Duration: 30 * time.Second}}
	series := recorded(t, 30, 100, func(i int) bool { return i == 20 || i == 21 })
	window := summary.Window{From: 19500 * time.Millisecond, To: 22500 * time.Millisecond} // overlaps four intervals
	r := NewLoad(p, series, LoadInput{Outcome: Finished, Faults: []summary.Window{window}})
	if o := r.OutsideFaults; o == nil || o.Requests != 26*200 || o.OK != 26*200 || o.Throughput != 200 ||
		o.ErrorRate != 0 || o.Latency == nil {
		t.Errorf("outside of the fault: %+v", o)
	}
	if r.Total.Errors() != 60 || r.Total.Requests != 28*200+60 {
		t.Errorf("the total: %+v", r.Total)
	}
	if len(r.Anomalies) != 0 {
		t.Errorf("the fault is reported as an anomaly: %+v", r.Anomalies)
	}
	if r := NewLoad(p, series, LoadInput{Outcome: Finished}); r.OutsideFaults != nil {
		t.Errorf("without a fault: %+v", r.OutsideFaults)
	}
}
