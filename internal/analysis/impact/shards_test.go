package impact

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthQuietShardIsNotDown: a healthy shard with 5 requests/s is silent for longer than the outage of the shard
// that is down.
func TestTruthQuietShardIsNotDown(t *testing.T) {
	const seconds, fault = 60, 40
	r := rand.New(rand.NewPCG(5, 6))
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set"}, 1)
	list := make([]*record.Interval, seconds*int(throughput.Second/recorded.Step))
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
			Shards:     []record.ShardCounts{{}, {OK: 100}},
		}
		list[i].Ops[0].OK = 100
		list[i].Ops[0].Latency = histogram.Buckets{{Index: 300, Count: 100}}
	}
	// Arrivals of the quiet shard are random, and answered at once: no request waits in a gap.
	for at, last := int64(0), int64(0); ; last = at {
		if at += int64(r.ExpFloat64() * 200e6); at >= seconds*int64(throughput.Second) {
			break
		}
		iv := list[at/int64(recorded.Step)]
		iv.Shards[0].OK++
		iv.Ops[0].OK++
		if at-last > 400e6 {
			iv.ShardGaps = append(iv.ShardGaps, record.ShardGap{Shard: 0, Gap: record.Unproven(last, at)})
		}
	}
	for i := range 2 {
		iv := list[fault*int(throughput.Second/recorded.Step)+i]
		iv.Shards[1].OK, iv.Ops[0].OK = 0, iv.Ops[0].OK-100
	}
	down := record.Gap{
		From:         fault*int64(throughput.Second) + 1e6,
		To:           fault*int64(throughput.Second) + 202e6,
		UnprovenHead: 1e6,
	}
	end := list[down.To/int64(recorded.Step)]
	end.ShardGaps = append(end.ShardGaps, record.ShardGap{Shard: 1, Gap: down})
	for _, iv := range list {
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	m := Analyze(s, Fault{At: fault * time.Second}, Options{})
	truth.Report(t, "T9", "a shard with 5 requests/s is healthy, another one is down for 201 ms", "201ms of shard 1",
		fmt.Sprintf("%s of shard %d", m.Outages.Shard.Value, m.Outages.Shard.Shard),
		m.Outages.Shard.Value == 201*ms && m.Outages.Shard.Shard == 1 && m.Outages.Shard.AtLeast > 190*ms)
	if _, quiet := longestGapOf(s.ShardGaps(0)); quiet < 500*ms {
		t.Errorf("the longest silence of the quiet shard is %s: the scenario shows nothing", quiet)
	}
}

func longestGapOf(list []record.Gap) (g record.Gap, length time.Duration) {
	for _, one := range list {
		if d := time.Duration(one.To - one.From); d > length {
			g, length = one, d
		}
	}
	return g, length
}
