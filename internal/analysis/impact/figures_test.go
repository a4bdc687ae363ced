package impact

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
)

// perSecond makes a series of one pod with these successes in each second, spread evenly over its intervals.
func perSecond(t *testing.T, rates ...uint64) *record.Series {
	t.Helper()
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 1)
	for _, rate := range rates {
		for range 10 {
			iv := &record.Interval{Index: s.Next(0), Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1}
			iv.Ops[0].OK = rate / 10
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func repeat(n int, rate uint64) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = rate
	}
	return list
}

func TestSteady(t *testing.T) {
	var waves, slowWaves, rising []uint64
	for i := range uint64(20) {
		waves = append(waves, 900+200*(i%2)) // 100 around 1000: standard deviation 100*sqrt(20/19) = 102.6
		slowWaves = append(slowWaves, 90+20*(i%2))
		rising = append(rising, 1000+10*i)
	}
	for _, c := range []struct {
		name  string
		rates []uint64
		from  time.Duration
		want  bool
		why   string
	}{
		{"constant", repeat(20, 1000), 0, true, "throughput is steady at 1000 requests/s (varies by 0.0 %) over the last 20s"},
		{"too short", repeat(19, 1000), 0, false, "measured for 19s of the 20s"},
		{"warm-up does not count", repeat(25, 1000), 6 * time.Second, false, "measured for 19s of the 20s"},
		{"what was before the window does not count", append([]uint64{10, 5000}, repeat(20, 1000)...), 0, true, "steady"},
		{"no load", repeat(20, 0), 0, false, "no successes"},
		{"waves", waves, 0, false, "throughput varies by 10.3 % (limit 5 %) over the last 20s"},
		{"the same relative waves, slow", slowWaves, 0, false, "throughput varies by 10.3 % (limit 10 %)"},
		{"rising", rising, 0, false, "throughput varies by 5.4 % (limit 5 %)"},
	} {
		ok, why := Steady(perSecond(t, c.rates...), 20*time.Second, c.from, Planned{})
		if ok != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q, want %v, %q", c.name, ok, why, c.want, c.why)
		}
	}
	// 3 per second on 1000: varies by 1.7 %, but rises by 60/1028.5 = 5.8 % over 20 s. Counts are in tens: one step of 30 every ten seconds would not do.
	s := record.NewSeries("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	for i := range int64(20) {
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 1)}
		iv.Ops[0].OK = uint64(1060 - 3*i)
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	if ok, why := Steady(s, 20*time.Second, 0, Planned{}); ok || !strings.Contains(why, "throughput falls by 5.8 % (limit 5 %)") {
		t.Errorf("slowly falling: %v, %q", ok, why)
	}
}

// A window that is no multiple of the step is that multiple above it: the delay of a fault may be any.
func TestSteadyOverAnyWindow(t *testing.T) {
	t.Parallel()
	rates := repeat(30, 1000)
	for _, window := range []time.Duration{20 * time.Second, 20*time.Second + time.Microsecond, 20639 * time.Millisecond, 29999 * time.Millisecond} {
		if ok, why := Steady(perSecond(t, rates...), window, 0, Planned{}); !ok {
			t.Errorf("over %s: %s", window, why)
		}
	}
	if ok, why := Steady(perSecond(t, rates...), 30*time.Second+time.Microsecond, 0, Planned{}); ok || why != "measured for 30s of the 30.1s that must be steady" {
		t.Errorf("over more than there is: %v, %s", ok, why)
	}
}

func TestAnomalies(t *testing.T) {
	join := func(parts ...[]uint64) (all []uint64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		rates   []uint64
		exclude []Window
		want    []Anomaly
	}{
		{name: "none", rates: repeat(30, 1000)},
		{name: "one second is too short", rates: join(repeat(10, 1000), repeat(1, 0), repeat(10, 1000))},
		{name: "71 % is not low", rates: join(repeat(10, 1000), repeat(3, 710), repeat(10, 1000))},
		{name: "three seconds", rates: join(repeat(10, 1000), []uint64{600, 300, 500}, repeat(10, 1000)),
			want: []Anomaly{{At: 10 * time.Second, Length: 3 * time.Second, MinRate: 300, Usual: 1000, Depth: 0.7}}},
		{name: "at the end", rates: join(repeat(10, 1000), repeat(2, 0)),
			want: []Anomaly{{At: 10 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}}},
		{name: "in a fault", rates: join(repeat(10, 1000), repeat(5, 0), repeat(10, 1000)), exclude: []Window{seconds(10, 15)}},
		{name: "beyond a fault", rates: join(repeat(10, 1000), repeat(5, 0), repeat(10, 1000)), exclude: []Window{seconds(9.5, 12.5)},
			want: []Anomaly{{At: 13 * time.Second, Length: 2 * time.Second, Usual: 1000, Depth: 1}}},
		{name: "a new level becomes usual", rates: join(repeat(40, 1000), repeat(100, 400)),
			want: []Anomaly{{At: 40 * time.Second, Length: 30 * time.Second, MinRate: 400, Usual: 1000, Depth: 0.6}}},
		{name: "too early for a baseline", rates: join(repeat(3, 1000), repeat(3, 0), repeat(10, 1000))},
	} {
		if diff := cmp.Diff(c.want, Anomalies(perSecond(t, c.rates...), 0, Planned{}, c.exclude), approx); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestLostPodIsNoAnomaly(t *testing.T) {
	l := load{rate: 1000, length: 40 * time.Second, pods: 2}
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 2)
	for p := range 2 {
		for _, iv := range l.intervals(p, 2)[:400-200*p] {
			if err := s.Add(p, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Lose(1)
	if found := Anomalies(s, 0, Planned{}, nil); len(found) > 0 || s.Complete() != 400 {
		t.Errorf("found %v in %d intervals", found, s.Complete())
	}
}

func TestSummarize(t *testing.T) {
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get", "set"}, 1)
	for i := range int64(50) {
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 2), MaxLag: 1000 * i}
		get, set := &iv.Ops[0], &iv.Ops[1]
		get.OK, get.BytesIn, get.BytesOut = 80, 800, 160
		get.Latency = record.Buckets{{Index: 100, Count: 72}, {Index: 1000, Count: 8}}
		set.OK, set.Fail, set.Unknown, set.Dropped = 10, 4, 3, 3
		set.Errors[record.ClassOOM], set.Errors[record.ClassTimeout] = 4, 3
		set.Latency = record.Buckets{{Index: 2000, Count: 10}}
		set.Service = record.Buckets{{Index: 50, Count: 10}}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	us := time.Microsecond
	got := Summarize(s, 1950*ms) // the first whole interval begins at 2 s: 30 intervals
	classes := [record.NumClasses]uint64{record.ClassOOM: 120, record.ClassTimeout: 90}
	service := Latency{P50: 50 * us, P90: 50 * us, P99: 50 * us, P999: 50 * us, Max: 50 * us, Mean: 50 * us, Count: 300}
	want := Summary{
		Measured: 3 * time.Second, MaxLag: 49 * us,
		Figures: Figures{Requests: 3000, OK: 2700, Fail: 120, Unknown: 90, Dropped: 90, ByClass: classes, ErrorRate: 0.1, Throughput: 900, BytesIn: 24000, BytesOut: 4800,
			// 90 per interval: 72 of 100 us, 8 of 1000 us, 10 of 2000 us; the last are shown as 2000 us: cells are 1 us wide up to 2047 us.
			Latency: Latency{P50: 100 * us, P90: 2000 * us, P99: 2000 * us, P999: 2000 * us, Max: 2000 * us, Mean: 391111 * time.Nanosecond, Count: 2700}, Service: service},
		Operations: []Operation{
			{"get", Figures{Requests: 2400, OK: 2400, Throughput: 800, BytesIn: 24000, BytesOut: 4800,
				Latency: Latency{P50: 100 * us, P90: 100 * us, P99: 1000 * us, P999: 1000 * us, Max: 1000 * us, Mean: 190 * us, Count: 2400}}},
			{"set", Figures{Requests: 600, OK: 300, Fail: 120, Unknown: 90, Dropped: 90, ByClass: classes, ErrorRate: 0.5, Throughput: 100,
				Latency: Latency{P50: 2000 * us, P90: 2000 * us, P99: 2000 * us, P999: 2000 * us, Max: 2000 * us, Mean: 2000 * us, Count: 300}, Service: service}},
		},
	}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// 2700 successes in 2.95 s.
	if got := SummarizeTo(s, 1950*ms, 4950*ms); got.Measured != 2950*ms || math.Abs(got.Throughput-2700/2.95) > 1e-6 || got.OK != 2700 {
		t.Errorf("up to 4.95 s: measured %s, %.3f/s, %d", got.Measured, got.Throughput, got.OK)
	}
	if got := Summarize(s, time.Hour); got.Requests != 0 || got.Measured != 0 || got.Throughput != 0 {
		t.Errorf("nothing measured: %+v", got)
	}
}

func TestTrend(t *testing.T) {
	if got := Trend(perSecond(t), 10); got != "" {
		t.Errorf("empty run: %q", got)
	}
	if got := Trend(perSecond(t, 0, 0, 0), 10); got != "▁▁▁" {
		t.Errorf("no success: %q", got)
	}
	if got := Trend(perSecond(t, 1000, 500, 0, 1000, 1000), 10); got != "█▅▁██" {
		t.Errorf("short run: %q", got)
	}
	// Answers after the planned end are of requests that waited, and no throughput of their second.
	late := record.NewSeries("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	for i, ok := range []uint64{1000, 500, 1500} {
		iv := &record.Interval{Index: int64(i), Ops: make([]record.Op, 1)}
		if iv.Ops[0].OK = ok; i == 2 {
			iv.Ops[0].Drained = 1000
		}
		if err := late.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	if got := Trend(late, 10); got != "█▅▅" {
		t.Errorf("with drained answers: %q", got)
	}
	// One second down in three minutes: 180 s in 24 cells of 7.5 s; 100.3 s is in cell 13.
	got := Trend(load{rate: 1000, length: 3 * time.Minute, down: []Window{seconds(100.3, 101.3)}}.record(t), 24)
	if want := strings.Repeat("█", 13) + "▁" + strings.Repeat("█", 10); got != want {
		t.Errorf("one second down:\n%s, want\n%s", got, want)
	}
}

func TestServers(t *testing.T) {
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 1)
	reading := func(at time.Duration, runID string, cpu, thread float64, memory, evicted, rejected int64) record.Server {
		return record.Server{At: int64(at), Address: "redis:6379", RunID: runID, Name: "redis", Version: "7.0.15", Mode: "standalone",
			CPUSeconds: cpu, CPUMainThreadSeconds: thread, UsedMemory: memory, EvictedKeys: evicted, RejectedConnections: rejected}
	}
	iv := &record.Interval{Ops: make([]record.Op, 1), Servers: []record.Server{
		reading(0, "a", 10, 8, 100, 5, 1),
		reading(time.Second, "a", 10.5, 8.4, 300, 7, 1),
		reading(1010*ms, "a", 10.6, 8.5, 300, 7, 1),       // too soon after the last: 100 ms of CPU in 10 ms
		reading(2*time.Second, "a", 11.2, 8.9, 200, 7, 4), // 0.7 s of CPU in 1 s
		reading(3*time.Second, "b", 0.1, 0, 50, 0, 0),     // another process: no difference
		reading(5*time.Second, "b", 0.7, 0, 60, 3, 0),
	}}
	if err := s.Add(0, iv); err != nil {
		t.Fatal(err)
	}
	want := ServerFacts{Name: "redis", Version: "7.0.15", Mode: "standalone", MaxCPU: 600, MaxMainThread: 450, MaxUsedMemory: 300,
		Evicted: 5, Rejected: 3, Restarts: 1, Readings: 6}
	if diff := cmp.Diff(want, Servers(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(ServerFacts{}, Servers(perSecond(t, 10))); diff != "" {
		t.Error(diff)
	}
}

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		values                       []float64
		median, deviation, vary, sen float64
	}{
		{nil, 0, 0, 0, 0},
		{[]float64{7}, 7, 0, 0, 0},
		{[]float64{1, 3}, 2, 1, 0.70710678, 2},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9}, 4.5, 0.5, 0.42761798, 0.79166667}, // mean 5, sample standard deviation 2.1380899
		{[]float64{10, 20, 30, 900, 50}, 30, 20, 1.93303995, 10},
	} {
		if got := median(c.values); got != c.median {
			t.Errorf("median of %v = %v", c.values, got)
		}
		if got := medianDeviation(c.values); got != c.deviation {
			t.Errorf("MAD of %v = %v", c.values, got)
		}
		if got := variation(c.values); !near(got, c.vary, 1e-7) {
			t.Errorf("variation of %v = %v, want %v", c.values, got, c.vary)
		}
		if got := theilSen(c.values); !near(got, c.sen, 1e-7) {
			t.Errorf("slope of %v = %v, want %v", c.values, got, c.sen)
		}
	}
}

// After the request of a graceful end, Redis serves for 12 s, is down for 3 s, and serves again: the fault has not recovered immediately.
func TestRecoveryWaitsForTheEffect(t *testing.T) {
	s := load{rate: 1000, length: 70 * time.Second, down: []Window{seconds(42, 45)}}.record(t)
	f := Fault{At: 30 * time.Second, Deadline: 40 * time.Second}
	early := Analyze(s, f, Options{})
	f.SeenAt = 42 * time.Second
	late := Analyze(s, f, Options{})
	if !early.Recovered || early.RecoveryTime.Value != 0 {
		t.Errorf("without the effect's instant: recovered %v after %v, want at once", early.Recovered, early.RecoveryTime.Value)
	}
	if !late.Recovered || late.RecoveryTime.Value < 14*time.Second || late.RecoveryTime.Value > 15*time.Second+time.Millisecond || late.Dips.All != 1 {
		t.Errorf("with it: recovered %v after %v, dip %v, want after 15 s, dip 1", late.Recovered, late.RecoveryTime.Value, late.Dips.All)
	}
}

// The aggregate hides the outage of one shard: it is the outage of the fault, and the gap is reported for the shard.
func TestImpactOfShardOutage(t *testing.T) {
	s := record.NewSeries("run", time.Unix(0, 0), time.Second, []string{"set"}, 1)
	const down, up = 30, 36 // seconds
	for i := range int64(60) {
		begin := i * int64(time.Second)
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin, LastOK: begin + int64(time.Second) - 1}
		iv.Ops[0].OK = 200
		iv.Shards = []record.ShardCounts{{OK: 100}, {OK: 100}}
		if i >= down && i < up {
			iv.Ops[0].OK, iv.Ops[0].Fail = 100, 100
			iv.FirstError, iv.LastError = begin, begin+int64(time.Second)-1
			iv.Shards[1] = record.ShardCounts{Errors: 100}
		}
		if i == up {
			iv.ShardGaps = []record.ShardGap{{Shard: 1, Gap: record.Gap{From: down * int64(time.Second), To: up*int64(time.Second) + 5e6}}}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	m := Analyze(s, Fault{At: down * time.Second}, Options{})
	if m.Outages.Load.Value != 0 || m.Outage.Value != 6*time.Second+5*time.Millisecond || m.Outage.Of != Shard || m.Outage.Shard != 1 {
		t.Errorf("outage of the load %s, of the fault %+v; want none, and 6.005s of shard 1", m.Outages.Load.Value, m.Outage)
	}
	if live := LiveOf(s, Fault{At: down * time.Second}, Options{}); live.Outage != m.Outage.Value {
		t.Errorf("live, the outage is %s", live.Outage)
	}
	if before := Analyze(s, Fault{At: 45 * time.Second}, Options{}); before.Outages.Shard.Value != 0 {
		t.Errorf("a later fault is blamed for %s", before.Outages.Shard.Value)
	}
	sum := Summarize(s, 0)
	if len(sum.Shards) != 2 || sum.Shards[1].OK != 5400 || sum.Shards[1].Errors != 600 || sum.Shards[0].Throughput != 100 {
		t.Errorf("shards %+v", sum.Shards)
	}
	gaps := NewGaps(s, 0, s.End())
	if down := gaps.Shard(1); len(down) != 1 || down[0].Length.Value != m.Outages.Shard.Value || len(gaps.Shard(0)) != 0 {
		t.Errorf("gaps of shards %+v and %+v", gaps.Shard(0), down)
	}
}
