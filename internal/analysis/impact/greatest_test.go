package impact

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// steadily makes a series of a minute with 1000 successes/s of two shards, changed before it is merged.
func steadily(t *testing.T, change func(list []*record.Interval)) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set"}, 1)
	list := make([]*record.Interval, int(time.Minute/recorded.Step))
	for i := range list {
		begin := int64(i) * int64(recorded.Step)
		list[i] = &record.Interval{
			Index:      int64(i),
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstError: -1,
			LastError:  -1,
			FirstOK:    begin,
			LastOK:     begin + int64(recorded.Step) - 1,
			Shards:     []record.ShardCounts{{OK: 50}, {OK: 50}},
		}
		list[i].Ops[0].Due, list[i].Ops[0].Sent, list[i].Ops[0].OK = 100, 100, 100
		list[i].Ops[0].Latency = histogram.Buckets{{Index: 300, Count: 100}}
	}
	change(list)
	for _, iv := range list {
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// The bounds of the worst shard are the greatest of any shard, each by itself: here the shard with the shorter gap may
// have been down for longer.
func TestShardOutageIsBoundedByEveryShard(t *testing.T) {
	t0 := int64(40 * time.Second)
	s := steadily(t, func(list []*record.Interval) {
		for i := range 10 {
			iv := list[400+i]
			iv.Shards = []record.ShardCounts{{}, {}}
			iv.Ops[0].OK, iv.Ops[0].Latency, iv.FirstOK, iv.LastOK = 0, nil, -1, -1
		}
		list[410].ShardGaps = []record.ShardGap{
			{Shard: 0, Gap: record.Gap{From: t0, To: t0 + int64(time.Second)}},
			{Shard: 1, Gap: record.Gap{From: t0 + int64(10*ms), To: t0 + int64(time.Second), MaybeBefore: int64(300 * ms)}},
		}
		list[410].Gaps = []record.Gap{{From: t0 + int64(10*ms), To: t0 + int64(time.Second)}}
	})
	m := Analyze(s, Fault{At: 40 * time.Second}, Options{})
	if m.Outages.Shard.Shard != 0 || m.Outages.Shard.Value != time.Second || m.Outages.Shard.AtMost != 1290*ms ||
		m.Outages.Shard.AtLeast < 980*ms {
		t.Errorf("%+v of shard %d", m.Outages.Shard, m.Outages.Shard.Shard)
	}
}

// The first error and the first gap together bound the time to the impact: a gap that was seen later may have begun
// sooner.
func TestTimeToImpactIsBoundedByErrorsAndGaps(t *testing.T) {
	t0 := int64(40 * time.Second)
	s := steadily(t, func(list []*record.Interval) {
		iv := list[400]
		iv.Ops[0].OK, iv.Ops[0].Fail = 50, 50
		iv.FirstError, iv.LastError = t0+int64(59*ms), t0+int64(99*ms)
		list[401].Gaps = []record.Gap{{From: t0 + int64(60*ms), To: t0 + int64(150*ms), MaybeBefore: int64(55 * ms)}}
	})
	if got, want := Analyze(s, Fault{At: 40 * time.Second},
		Options{}).TimeToImpact, (durations.Bounded{Value: 59 * ms, AtLeast: 5 * ms, AtMost: 59 * ms}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// What is shorter than the time between successes of a sparse load may have happened unseen: the outage is not 0 for
// certain.
func TestOutageThatNobodySees(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		load                     recorded.Load
		outage, server, recovery durations.Bounded
	}{
		{
			"5/s, down for 150 ms between two requests",
			recorded.Load{Rate: 5, Length: time.Minute, Down: []summary.Window{seconds(40.12, 40.27)}},
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 400 * ms},
			durations.None,
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 400 * ms},
		},
		{
			"10 pods with 10/s",
			recorded.Load{Rate: 10, Length: time.Minute, Pods: 10},
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 2 * time.Second},
			durations.None,
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 2 * time.Second},
		},
		{
			"a busy load, and its probe",
			recorded.Load{Rate: 1000, Length: time.Minute, Probe: 100},
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 5 * ms},
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 20 * ms},
			durations.Bounded{Value: 0, AtLeast: 0, AtMost: 5 * ms},
		},
	} {
		m := Analyze(tc.load.Record(t), Fault{At: 40 * time.Second}, Options{})
		if m.Outages.Load != tc.outage || m.Outages.Probe != tc.server || m.RecoveryTime != tc.recovery {
			t.Errorf("%s: outage %v, server %v, recovery %v", tc.name, m.Outages.Load, m.Outages.Probe, m.RecoveryTime)
		}
	}
}

// stalledSeries is the record of a load whose generator did not run for some times: nothing was sent, and nothing
// proves the gaps then.
func stalledSeries(t *testing.T, l recorded.Load, stalls ...summary.Window) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
	l.Down = append(slices.Clone(l.Down), stalls...)
	for _, iv := range l.Intervals(0, 1) {
		for i, g := range iv.Gaps {
			if recorded.Amid(stalls, time.Duration(g.From)+10*ms) {
				iv.Gaps[i].UnprovenHead = g.To - g.From
			}
		}
		for _, w := range stalls {
			if begin := time.Duration(iv.Index) * recorded.Step; w.From >= begin && w.From < begin+recorded.Step {
				iv.Stalls = append(iv.Stalls, record.Stall{From: int64(w.From), To: int64(w.To)})
			}
		}
		for i := range iv.Ops {
			iv.Ops[i].Due, iv.Ops[i].Sent = iv.Ops[i].OK, iv.Ops[i].OK // nothing was sent in a stall
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What a stalled load generator adds to a recovery is not certain.
func TestRecoveryDespiteStalls(t *testing.T) {
	down := []summary.Window{seconds(30, 31)}
	for _, tc := range []struct {
		name   string
		down   []summary.Window
		stalls []summary.Window
		truth  time.Duration
	}{
		{"Redis is healthy, the generator stops at t0", nil, []summary.Window{seconds(29.95, 30.25)}, 0},
		{"200 ms, 5 s after an outage", down, []summary.Window{seconds(35, 35.2)}, time.Second},
		{"500 ms, 6 s after an outage", down, []summary.Window{seconds(36, 36.5)}, time.Second},
		{"2 s, 6 s after an outage", down, []summary.Window{seconds(36, 38)}, time.Second},
		{
			"20 ms in each second",
			down,
			[]summary.Window{seconds(32.1, 32.12), seconds(33.1, 33.12), seconds(34.1, 34.12), seconds(35.1, 35.12)},
			time.Second,
		},
	} {
		s := stalledSeries(t, recorded.Load{Rate: 1000, Length: time.Minute, Down: tc.down}, tc.stalls...)
		m := Analyze(s, Fault{At: 30 * time.Second, Deadline: 20 * time.Second}, Options{})
		if r := m.RecoveryTime; !m.Recovered || r.AtLeast > tc.truth+ms || r.AtMost < tc.truth ||
			tc.truth > 0 && r.AtLeast < tc.truth-300*ms {
			t.Errorf("%s: recovery time %v, the truth is %v", tc.name, r, tc.truth)
		}
	}
}

// An outage that had begun before the fault may hide what the fault does: it counts from the injection on, and nothing
// of it is certain.
func TestOutageThatBeganBeforeTheFault(t *testing.T) {
	for name, l := range map[string]recorded.Load{
		"failing": {Rate: 1000, Length: time.Minute, Failing: []summary.Window{seconds(29.8, 40)}, Probe: 100},
		"hanging": {Rate: 1000, Length: time.Minute, Down: []summary.Window{seconds(29.8, 40)}},
	} {
		m := Analyze(l.Record(t), Fault{At: 30 * time.Second}, Options{})
		if got := reasons(m); got != DownBefore {
			t.Errorf("%s: the doubts are %q", name, got)
		}
		if o := m.Outage; (o.Value-10*time.Second).Abs() > 10*ms || o.AtLeast != 0 || o.AtMost < 10*time.Second ||
			m.TimeToImpact.Known() && name == "hanging" {
			t.Errorf("%s: outage %v, impact %v", name, o, m.TimeToImpact)
		}
		if (m.RecoveryTime.Value - 10*time.Second).Abs() > 10*ms {
			t.Errorf("%s: recovery %v", name, m.RecoveryTime)
		}
	}
}

// While new clients are not served the impact is not final, and if they never are, their outage has no end.
func TestServersThatServeNoNewClients(t *testing.T) {
	fault := Fault{At: 30 * time.Second, Deadline: 20 * time.Second}
	at := func(end time.Duration) *merged.Series {
		return recorded.Load{Rate: 1000, Length: end, Probe: 100, Aside: []summary.Window{seconds(30, 100)}}.Record(t)
	}
	if Settled(at(45*time.Second), fault, Options{}) {
		t.Error("settled, though the probe has no success and the deadline has not come")
	}
	s := at(61 * time.Second)
	if !Settled(s, fault, Options{}) {
		t.Error("not settled after the deadline")
	}
	if m := Analyze(s, fault, Options{}); !m.Recovered || reasons(m) != OutageNotOver {
		t.Errorf("recovered %v, doubts %q", m.Recovered, reasons(m))
	}
}

// Two shards that are down one after the other, for 1.0 and 1.1 s, are no server that is down for 2 s. A probe that is
// never served again is not hidden by those of other shards.
func TestServerOutageIsThatOfOneShard(t *testing.T) {
	const at = int64(40 * time.Second)
	shardsDown := func(gaps ...record.ShardGap) *merged.Series {
		return steadily(t, func(list []*record.Interval) {
			for _, iv := range list {
				iv.Probe.Due, iv.Probe.Sent, iv.Probe.OK = 30, 30, 30
				iv.ProbeShards = []record.ShardCounts{{OK: 10}, {OK: 10}, {OK: 10}}
				begin := iv.Index * int64(recorded.Step)
				for _, g := range gaps {
					if begin >= g.From && begin+int64(recorded.Step) <= g.To {
						iv.ProbeShards[g.Shard] = record.ShardCounts{Errors: 10}
						iv.Probe.OK -= 10
					}
					if g.To > begin && g.To <= begin+int64(recorded.Step) {
						iv.ProbeShardGaps = append(iv.ProbeShardGaps, g)
					}
				}
			}
		})
	}
	gap := func(shard int, from, to time.Duration) record.ShardGap {
		return record.ShardGap{Shard: shard, Gap: record.Gap{From: at + int64(from), To: at + int64(to)}}
	}
	m := Analyze(shardsDown(gap(1, 0, time.Second), gap(2, 900*ms, 2*time.Second)), Fault{At: 40 * time.Second}, Options{})
	if m.Outages.Probe.Value != 1100*ms || m.Outages.Probe.AtLeast < 1050*ms || m.Outages.Probe.AtMost != 1100*ms {
		t.Errorf("two shards after each other: %v", m.Outages.Probe)
	}
	never := Analyze(shardsDown(gap(1, 0, time.Hour)), Fault{At: 40 * time.Second, Deadline: 10 * time.Second}, Options{})
	if never.Outages.Probe.Value < 19*time.Second || reasons(never) != OutageNotOver {
		t.Errorf("a shard that is never served again: %v, doubts %q", never.Outages.Probe, reasons(never))
	}
}

// Rare writes fail for longer than all requests do. Where reads succeed again, but not how much longer, the outage is
// not known better than that.
func TestOutageOfRareWrites(t *testing.T) {
	const at = int64(40 * time.Second)
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set", "get"}, 1)
	s.SetReadOnly([]bool{false, true})
	for i := range int64(time.Minute / recorded.Step) {
		begin := i * int64(recorded.Step)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(recorded.Step) - 1,
		}
		iv.Ops[1].OK, iv.Ops[1].Latency = 100, histogram.Buckets{{Index: 300, Count: 100}}
		if i%2 == 0 {
			iv.Ops[0].OK, iv.Ops[0].Latency = 1, histogram.Buckets{{Index: 300, Count: 1}}
		}
		if begin >= at && begin < at+int64(800*ms) { // writes fail
			iv.Ops[0].OK, iv.Ops[0].Fail, iv.Ops[0].Latency = 0, 1, nil
			iv.FirstError, iv.LastError = begin+int64(50*ms), begin+int64(50*ms)
		}
		if begin >= at && begin < at+int64(500*ms) { // reads, too
			iv.Ops[1].OK, iv.Ops[1].Fail, iv.Ops[1].Latency = 0, 100, nil
			iv.FirstOK, iv.LastOK = -1, -1
		}
		if begin == at+int64(500*ms) {
			iv.Gaps = []record.Gap{{From: at, To: at + int64(500*ms)}}
			iv.PartGaps = []record.PartGap{{Part: record.Reads, Gap: iv.Gaps[0]}}
		}
		if begin == at+int64(800*ms) {
			iv.PartGaps = []record.PartGap{
				{
					Part: record.Writes,
					Gap: record.Gap{
						From:         at - int64(100*ms),
						To:           at + int64(800*ms),
						UnprovenHead: int64(150 * ms),
						UnprovenTail: int64(50 * ms),
					},
				},
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	if m := Analyze(s, Fault{At: time.Duration(at)}, Options{}); m.Outage.AtMost < 800*ms || m.Outage.AtLeast > 800*ms {
		t.Errorf("the outage is %v (%s), of writes %+v; the truth is 800ms", m.Outage, m.Outage.Of, m.Outages.Writes)
	}
}

// Writes fail while the load generator does not run, twice: reads succeed in between. How long writes failed before is
// not known.
func TestOutageOfWritesBesideAStall(t *testing.T) {
	const at = int64(40 * time.Second)
	const begin, seen, end = at - int64(100*ms), at + int64(350*ms), at + int64(1178*ms)
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set", "get"}, 1)
	s.SetReadOnly([]bool{false, true})
	for i := range int64(time.Minute / recorded.Step) {
		from := i * int64(recorded.Step)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
		}
		switch to := from + int64(recorded.Step); {
		case to <= begin || from >= end:
			iv.FirstOK, iv.LastOK = from, to-1
			iv.Ops[0].OK, iv.Ops[1].OK = 50, 50
		case from <= seen && seen < to: // it wakes
			iv.FirstOK, iv.LastOK, iv.FirstError, iv.LastError = seen, seen, seen+1, seen+1
			iv.Ops[0].Fail, iv.Ops[1].OK = 10, 10
			iv.Gaps = []record.Gap{{From: begin, To: seen, UnprovenHead: seen - begin - int64(ms)}}
			iv.PartGaps = []record.PartGap{{Part: record.Reads, Gap: iv.Gaps[0]}}
			iv.Stalls = []record.Stall{{From: begin, To: seen - int64(ms)}}
		case from <= end && end < to: // it wakes again
			iv.FirstOK, iv.LastOK, iv.FirstError, iv.LastError = end, end, end-1, end-1
			iv.Ops[0].Fail, iv.Ops[0].OK, iv.Ops[1].OK = 10, 10, 10
			iv.Gaps = []record.Gap{{From: seen, To: end}}
			iv.PartGaps = []record.PartGap{
				{Part: record.Reads, Gap: iv.Gaps[0]},
				{Part: record.Writes, Gap: record.Gap{From: begin, To: end, UnprovenHead: seen - begin - int64(ms)}},
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	const truth = 1176 * ms
	if m := Analyze(s, Fault{At: time.Duration(at)}, Options{}); m.Outage.AtMost < truth || m.Outage.AtLeast > truth {
		t.Errorf("the outage is %v (%s), of writes %+v; the truth is %v", m.Outage, m.Outage.Of, m.Outages.Writes, truth)
	}
}

// A gap of the load, or of its writes alone, that is open when the figures become final can go on: the load has not
// recovered then, so that no objective of the outage alone decides.
func TestOpenGapIsNoRecovery(t *testing.T) {
	const at = int64(40 * time.Second)
	fault := Fault{At: 40 * time.Second, Deadline: 10 * time.Second}
	all := recorded.Load{Rate: 1000, Length: 65 * time.Second, Down: []summary.Window{seconds(40, 100)}}.Record(t)
	writes := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set", "get"}, 1)
	writes.SetReadOnly([]bool{false, true})
	for i := range int64(65 * time.Second / recorded.Step) {
		begin := i * int64(recorded.Step)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(recorded.Step) - 1,
		}
		iv.Ops[1].OK, iv.Ops[1].Latency = 4000, histogram.Buckets{{Index: 300, Count: 4000}}
		if begin < at {
			iv.Ops[0].OK, iv.Ops[0].Latency = 2, histogram.Buckets{{Index: 300, Count: 2}}
		} else { // too few fail to raise the error rate by the margin
			iv.Ops[0].Fail, iv.FirstError, iv.LastError = 2, begin+int64(50*ms), begin+int64(50*ms)
		}
		if err := writes.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]*merged.Series{"all": all, "writes": writes} {
		if m := Analyze(s, fault, Options{}); !Settled(s, fault, Options{}) || m.Recovered ||
			m.Outage.Value < 20*time.Second || m.OutageEnd.Known() {
			t.Errorf("%s: recovered %v, outage %v until %v", name, m.Recovered, m.Outage, m.OutageEnd)
		}
	}
}
