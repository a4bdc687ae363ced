package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// steadily makes a series of a minute with 1000 successes/s of two shards, changed before it is merged.
func steadily(t *testing.T, change func(list []*record.Interval)) *record.Series {
	t.Helper()
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"set"}, 1)
	list := make([]*record.Interval, int(time.Minute/step))
	for i := range list {
		begin := int64(i) * int64(step)
		list[i] = &record.Interval{Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin, LastOK: begin + int64(step) - 1,
			Shards: []record.ShardCounts{{OK: 50}, {OK: 50}}}
		list[i].Ops[0].Due, list[i].Ops[0].Sent, list[i].Ops[0].OK = 100, 100, 100
		list[i].Ops[0].Latency = record.Buckets{{Index: 300, Count: 100}}
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

// The bounds of the worst shard are the greatest of any shard, each by itself: here the shard with the shorter gap may have been down for longer.
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
	if m.ShardDown != 0 || m.ShardOutage.Value != time.Second || m.ShardOutage.AtMost != 1290*ms || m.ShardOutage.AtLeast < 980*ms {
		t.Errorf("%+v of shard %d", m.ShardOutage, m.ShardDown)
	}
}

// The first error and the first gap together bound the time to the impact: a gap that was seen later may have begun sooner.
func TestTimeToImpactIsBoundedByErrorsAndGaps(t *testing.T) {
	t0 := int64(40 * time.Second)
	s := steadily(t, func(list []*record.Interval) {
		iv := list[400]
		iv.Ops[0].OK, iv.Ops[0].Fail = 50, 50
		iv.FirstError, iv.LastError = t0+int64(59*ms), t0+int64(99*ms)
		list[401].Gaps = []record.Gap{{From: t0 + int64(60*ms), To: t0 + int64(150*ms), MaybeBefore: int64(55 * ms)}}
	})
	if got, want := Analyze(s, Fault{At: 40 * time.Second}, Options{}).TimeToImpact, (Bounded{59 * ms, 5 * ms, 59 * ms}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// What is shorter than the time between successes of a sparse load may have happened unseen: the outage is not 0 for certain.
func TestOutageThatNobodySees(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		load                     load
		outage, server, recovery Bounded
	}{
		{"5/s, down for 150 ms between two requests", load{rate: 5, length: time.Minute, down: []Window{seconds(40.12, 40.27)}},
			Bounded{0, 0, 400 * ms}, none, Bounded{0, 0, 400 * ms}},
		{"10 pods with 10/s", load{rate: 10, length: time.Minute, pods: 10}, Bounded{0, 0, 2 * time.Second}, none, Bounded{0, 0, 2 * time.Second}},
		{"a busy load, and its probe", load{rate: 1000, length: time.Minute, probe: 100}, Bounded{0, 0, 5 * ms}, Bounded{0, 0, 20 * ms}, Bounded{0, 0, 5 * ms}},
	} {
		m := Analyze(tc.load.record(t), Fault{At: 40 * time.Second}, Options{})
		if m.Outage != tc.outage || m.ServerOutage != tc.server || m.RecoveryTime != tc.recovery {
			t.Errorf("%s: outage %v, server %v, recovery %v", tc.name, m.Outage, m.ServerOutage, m.RecoveryTime)
		}
	}
}
