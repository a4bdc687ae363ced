package impact

import (
	"strings"
	"testing"
	"time"
)

// The first sign of a breakage is exact for an outage, and to the second for a dip without a gap. Nothing is one that was before, is another fault's, or is short.
func TestBreakageSince(t *testing.T) {
	from := func(at, length time.Duration) []Window { return []Window{{at, at + length}} }
	for name, tc := range map[string]struct {
		load    load
		exclude []Window
		at      time.Duration // of the sign; 0 = there is none
		within  time.Duration
		why     string
	}{
		"nothing":                {load: load{}},
		"a short outage":         {load: load{failing: from(40*time.Second, 400*ms)}, at: 40 * time.Second, within: 10 * ms, why: "an outage"},
		"a stall":                {load: load{failing: from(40*time.Second, 200*ms)}},
		"a long outage":          {load: load{failing: from(40300*ms, 5*time.Second)}, at: 40300 * ms, within: 10 * ms, why: "an outage"},
		"an outage that goes on": {load: load{failing: from(59*time.Second, time.Minute)}, at: 59 * time.Second, within: 10 * ms, why: "an outage"},
		"a dip":                  {load: load{slow: from(40300*ms, 5*time.Second)}, at: 40 * time.Second, within: time.Second, why: "an anomaly"},
		"before the wait":        {load: load{failing: from(25*time.Second, time.Second)}},
		"begun before the wait":  {load: load{failing: from(28*time.Second, 4*time.Second)}},
		"another fault's":        {load: load{failing: from(40*time.Second, time.Second), slow: from(42*time.Second, 3*time.Second)}, exclude: from(39*time.Second, 10*time.Second)},
		"after another fault's":  {load: load{failing: []Window{{40 * time.Second, 41 * time.Second}, {55 * time.Second, 56 * time.Second}}}, exclude: from(39*time.Second, 10*time.Second), at: 55 * time.Second, within: 10 * ms, why: "an outage"},
		"the first of two":       {load: load{failing: []Window{{40 * time.Second, 41 * time.Second}, {55 * time.Second, 56 * time.Second}}}, at: 40 * time.Second, within: 10 * ms, why: "an outage"},
	} {
		tc.load.rate, tc.load.length = 200, time.Minute
		got, found := BreakageSince(tc.load.record(t), 30*time.Second, Options{}, tc.exclude)
		if found != (tc.at > 0) {
			t.Errorf("%s: %v, %+v", name, found, got)
			continue
		}
		if d := got.At - tc.at; found && (d < -tc.within || d > tc.within || !strings.HasPrefix(got.Why, tc.why)) {
			t.Errorf("%s: at %s (%s), want %s at %s", name, got.At, got.Why, tc.why, tc.at)
		}
	}
}
