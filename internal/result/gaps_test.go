package result

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// The outage of a load is its longest gap, or that of a shard or the probe, if this is provably longer.
func TestOutageOfALoad(t *testing.T) {
	gap := func(seconds float64, of string) *Gap {
		d := Seconds(seconds * float64(time.Second))
		return &Gap{Length: d, AtLeast: d - Seconds(20*time.Millisecond), AtMost: d + Seconds(10*time.Millisecond), Of: of}
	}
	shard := func(seconds float64) *ShardGap { return &ShardGap{Shard: 4, Gap: *gap(seconds, "")} }
	few := gap(1.01, "")
	few.AtMost = Seconds(5 * time.Second)
	for name, tc := range map[string]struct {
		load Load
		want *ShardGap // with the greatest bounds
	}{
		"no gap": {Load{}, nil},
		"the load": {
			Load{LongestGap: gap(3, ""), LongestShardGap: shard(2), ProbeGap: gap(1, "")},
			&ShardGap{Gap: *gap(3, impact.Load)},
		},
		"its writes": {
			Load{LongestGap: gap(3, impact.Writes), ProbeGap: gap(2, "")},
			&ShardGap{Gap: *gap(3, impact.Writes)},
		},
		"a shard": {
			Load{LongestGap: gap(1, ""), LongestShardGap: shard(3), ProbeGap: gap(2, "")},
			&ShardGap{Shard: 4, Gap: *gap(3, impact.Shard)},
		},
		"a shard, which the load hides": {Load{LongestShardGap: shard(3)}, &ShardGap{Shard: 4, Gap: *gap(3, impact.Shard)}},
		"the probe": {
			Load{LongestGap: gap(2, ""), LongestShardGap: shard(1), ProbeGap: gap(3, "")},
			&ShardGap{Gap: *gap(3, impact.Probe)},
		},
		"a probe, which proves no more": {Load{LongestGap: gap(1, ""), ProbeGap: few}, &ShardGap{Gap: Gap{
			Length: Seconds(time.Second), AtLeast: Seconds(990 * time.Millisecond), AtMost: few.AtMost, Of: impact.Load,
		}}},
	} {
		before := tc.load
		if diff := cmp.Diff(tc.want, tc.load.Outage()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, tc.load); diff != "" {
			t.Errorf("%s: the parts have changed:\n%s", name, diff)
		}
	}
}
