package impact

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
)

// The outage of a fault is the longest of its parts, of those of which it is proven that they had none for longer than
// the load.
func TestLongestOutage(t *testing.T) {
	around := func(value, atLeast, atMost time.Duration) durations.Bounded {
		return durations.Bounded{Value: value * ms, AtLeast: atLeast * ms, AtMost: atMost * ms}
	}
	load := around(1000, 990, 1010)
	of := func(change func(*Outages)) Outages {
		o := Outages{
			Load:   load,
			Reads:  durations.None,
			Writes: durations.None,
			Shard:  ShardOutage{Bounded: durations.None},
			Probe:  durations.None,
		}
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		parts Outages
		want  Outage
	}{
		"the load alone": {of(func(*Outages) {}), Outage{Bounded: load, Of: Load}},
		"its only kind":  {of(func(o *Outages) { o.Writes = load }), Outage{Bounded: load, Of: Load}},
		"its writes": {of(func(o *Outages) {
			o.Reads = around(0, 0, 5)
			o.Writes = around(2000, 1980, 2020)
		}), Outage{Bounded: around(2000, 1980, 2020), Of: Writes}},
		"its reads": {of(func(o *Outages) {
			o.Reads = around(1500, 1400,
				1600)
		}), Outage{Bounded: around(1500, 1400, 1600), Of: Reads}},
		"few writes, which prove no more": {
			of(func(o *Outages) { o.Writes = around(1900, 999, 1900) }),
			Outage{Bounded: around(1000, 999, 1010), Of: Load},
		},
		"a shard": {
			of(func(o *Outages) { o.Shard = ShardOutage{around(3000, 2990, 3010), 2} }),
			Outage{Bounded: around(3000, 2990, 3010), Of: Shard, Shard: 2},
		},
		"the probe": {of(func(o *Outages) {
			o.Probe = around(3000, 2990,
				3010)
		}), Outage{Bounded: around(3000, 2990, 3010), Of: Probe}},
		"a slow probe, which does not exclude one for longer": {
			of(func(o *Outages) { o.Probe = around(1900, 0, 2000) }),
			Outage{Bounded: around(1000, 990, 2000), Of: Load},
		},
		"the probe, longer than a shard that proves more": {of(func(o *Outages) {
			o.Shard, o.Probe = ShardOutage{around(2000, 1900, 2000), 1}, around(2500, 1500, 2600)
		}), Outage{Bounded: around(2500, 1900, 2600), Of: Probe}},
		"a shard, longer than the probe, which proves more": {of(func(o *Outages) {
			o.Shard, o.Probe = ShardOutage{around(2500, 1500, 2600), 1}, around(2000, 1900, 2000)
		}), Outage{Bounded: around(2500, 1900, 2600), Of: Shard, Shard: 1}},
	} {
		if got := tc.parts.Longest(); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
