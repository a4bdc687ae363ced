package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// After the request of a graceful end, Redis serves for 12 s, is down for 3 s, and serves again: the fault has not
// recovered immediately.
func TestRecoveryWaitsForTheEffect(t *testing.T) {
	s := recorded.Load{Rate: 1000, Length: 70 * time.Second, Down: []summary.Window{seconds(42, 45)}}.Record(t)
	f := Fault{At: 30 * time.Second, Deadline: 40 * time.Second}
	early := Analyze(s, f, Options{})
	f.SeenAt = 42 * time.Second
	late := Analyze(s, f, Options{})
	if !early.Recovered || early.RecoveryTime.Value != 0 {
		t.Errorf("without the effect's instant: recovered %v after %v, want at once", early.Recovered,
			early.RecoveryTime.Value)
	}
	if !late.Recovered || late.RecoveryTime.Value < 14*time.Second ||
		late.RecoveryTime.Value > 15*time.Second+time.Millisecond || late.Dips.All != 1 {
		t.Errorf("with it: recovered %v after %v, dip %v, want after 15 s, dip 1", late.Recovered, late.RecoveryTime.Value,
			late.Dips.All)
	}
}

// The aggregate hides the outage of one shard: it is the outage of the fault, and the gap is reported for the shard.
func TestImpactOfShardOutage(t *testing.T) {
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"set"}, 1)
	const down, up = 30, 36 // seconds
	for i := range int64(60) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(time.Second) - 1,
		}
		iv.Ops[0].OK = 200
		iv.Shards = []record.ShardCounts{{OK: 100}, {OK: 100}}
		if i >= down && i < up {
			iv.Ops[0].OK, iv.Ops[0].Fail = 100, 100
			iv.FirstError, iv.LastError = begin, begin+int64(time.Second)-1
			iv.Shards[1] = record.ShardCounts{Errors: 100}
		}
		if i == up {
			iv.ShardGaps = []record.ShardGap{
				{Shard: 1, Gap: record.Gap{From: down * int64(time.Second), To: up*int64(time.Second) + 5e6}},
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	m := Analyze(s, Fault{At: down * time.Second}, Options{})
	if m.Outages.Load.Value != 0 || m.Outage.Value != 6*time.Second+5*time.Millisecond || m.Outage.Of != Shard ||
		m.Outage.Shard != 1 {
		t.Errorf("outage of the load %s, of the fault %+v; want none, and 6.005s of shard 1", m.Outages.Load.Value, m.Outage)
	}
	if live := LiveOf(s, Fault{At: down * time.Second}, Options{}); live.Outage != m.Outage.Value {
		t.Errorf("live, the outage is %s", live.Outage)
	}
	if before := Analyze(s, Fault{At: 45 * time.Second}, Options{}); before.Outages.Shard.Value != 0 {
		t.Errorf("a later fault is blamed for %s", before.Outages.Shard.Value)
	}
	sum := summary.Summarize(s, 0)
	if len(sum.Shards) != 2 || sum.Shards[1].OK != 5400 || sum.Shards[1].Errors != 600 || sum.Shards[0].Throughput != 100 {
		t.Errorf("shards %+v", sum.Shards)
	}
	all := gaps.New(s, 0, s.End())
	if down := all.Shard(1); len(down) != 1 || down[0].Length.Value != m.Outages.Shard.Value || len(all.Shard(0)) != 0 {
		t.Errorf("gaps of shards %+v and %+v", all.Shard(0), down)
	}
}
