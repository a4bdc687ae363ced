package merged

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
)

// shardOf builds a pod's intervals, over n steps, from the instants in milliseconds of the successes and errors at one
// of two shards, with the gap log of the pod.
func shardOf(n, shard int, successes, errors []int64) []*record.Interval {
	list := silentFor(n)
	at := func(ms int64) (*record.Interval, *record.ShardCounts) {
		iv := list[ms*int64(time.Millisecond)/int64(testStep)]
		if iv.Shards == nil {
			iv.Shards = make([]record.ShardCounts, 2)
		}
		return iv, &iv.Shards[shard]
	}
	last := int64(0)
	for _, ms := range successes {
		iv, c := at(ms)
		c.OK++
		now := ms * int64(time.Millisecond)
		if now-last > silence.MinGap {
			iv.ShardGaps = append(iv.ShardGaps, record.ShardGap{Shard: shard, Gap: record.Gap{From: last, To: now}})
		}
		last = now
	}
	for _, ms := range errors {
		_, c := at(ms)
		c.Errors++
	}
	return list
}

// onElsewhere gives a load whose requests to one shard are listed successes at others until the end.
func onElsewhere(list []*record.Interval) []*record.Interval {
	for i, iv := range list {
		iv.FirstOK, iv.LastOK = int64(i)*int64(testStep), int64(i+1)*int64(testStep)-1
		iv.Ops[0].OK = 100
	}
	return list
}

func TestSeriesShardGaps(t *testing.T) {
	gap := func(from, to int64, open bool) record.Gap {
		return record.Gap{From: from * int64(time.Millisecond), To: to * int64(time.Millisecond), Open: open}
	}
	for _, c := range []struct {
		name string
		pods [][]*record.Interval
		want []record.Gap // of shard 1
	}{
		{name: "never reached", pods: [][]*record.Interval{shardOf(10, 0, every(0, 998), nil)}},
		{name: "no gap", pods: [][]*record.Interval{shardOf(10, 1, every(0, 998), nil)}},
		{
			name: "one gap",
			pods: [][]*record.Interval{shardOf(10, 1, join(every(0, 300), every(450, 998)), nil)},
			want: []record.Gap{gap(300, 450, false)},
		},
		{
			name: "only errors",
			pods: [][]*record.Interval{shardOf(10, 1, nil, every(0, 998))},
			want: []record.Gap{gap(0, 1000, true)},
		},
		{
			name: "errors at first",
			pods: [][]*record.Interval{shardOf(10, 1, every(350, 998), every(0, 348))},
			want: []record.Gap{gap(0, 350, false)},
		},
		{name: "added during the run", pods: [][]*record.Interval{shardOf(10, 1, every(450, 998), nil)}},
		{
			name: "added, and at first in error",
			pods: [][]*record.Interval{shardOf(10, 1, every(650, 998), every(420, 648))},
			want: []record.Gap{gap(400, 650, false)},
		},
		{
			name: "dead at the end",
			pods: [][]*record.Interval{shardOf(10, 1, every(0, 550), every(560, 998))},
			want: []record.Gap{gap(600, 1000, true)},
		},
		{name: "no more requests go there", pods: [][]*record.Interval{onElsewhere(shardOf(10, 1, every(0, 550), nil))}},
		{
			name: "no more requests go anywhere", pods: [][]*record.Interval{shardOf(10, 1, every(0, 550), nil)},
			want: []record.Gap{
				{
					From:         600 * int64(time.Millisecond),
					To:           1000 * int64(time.Millisecond),
					Open:         true,
					UnprovenHead: 400 * int64(time.Millisecond),
				},
			},
		},
		{
			name: "the other pod reached it",
			pods: [][]*record.Interval{
				shardOf(10, 1, join(every(0, 300), every(450, 998)), nil),
				shardOf(10, 1, every(0, 998), nil),
			},
		},
		{
			name: "the other pod never used it",
			pods: [][]*record.Interval{
				shardOf(10, 1, join(every(0, 300), every(450, 998)), nil),
				shardOf(10, 0, every(0, 998), nil),
			},
			want: []record.Gap{gap(300, 450, false)},
		},
		{
			name: "the other pod came later",
			pods: [][]*record.Interval{
				shardOf(20, 1, join(every(0, 300), every(450, 1998)), nil),
				shardOf(20, 1, every(1250, 1998), nil),
			},
			want: []record.Gap{gap(300, 450, false)},
		},
		{
			name: "overlap",
			pods: [][]*record.Interval{
				shardOf(10, 1, join(every(0, 300), every(450, 998)), nil),
				shardOf(10, 1, join(every(0, 350), every(600, 998)), nil),
			},
			want: []record.Gap{gap(350, 450, false)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestSeries(len(c.pods))
			for p := range c.pods {
				addAll(t, s, p, c.pods[p])
			}
			if diff := difference(c.want, s.ShardGaps(1), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if s.Shards() != 2 || s.ShardGaps(2) != nil || s.ShardGaps(-1) != nil {
				t.Errorf("%d shards, gaps of unknown shards: %v %v", s.Shards(), s.ShardGaps(2), s.ShardGaps(-1))
			}
		})
	}
	if one := newTestSeries(1); one.Shards() != 0 || one.ShardGaps(0) != nil {
		t.Error("a record without shards has one")
	}
}
