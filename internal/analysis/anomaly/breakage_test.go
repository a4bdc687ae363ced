package anomaly

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
)

const ms = time.Millisecond

// The first sign of a breakage is exact for an outage, and to the second for a dip without a gap. Nothing is one that
// was before, is another fault's, or is short.
func TestBreakageSince(t *testing.T) {
	from := func(at, length time.Duration) []summary.Window { return []summary.Window{{From: at, To: at + length}} }
	for name, tc := range map[string]struct {
		load    recorded.Load
		exclude []summary.Window
		at      time.Duration // of the sign; 0 = there is none
		within  time.Duration
		why     string
	}{
		"nothing": {load: recorded.Load{}},
		"a short outage": {
			load:   recorded.Load{Failing: from(40*time.Second, 400*ms)},
			at:     40 * time.Second,
			within: 10 * ms,
			why:    "an outage",
		},
		"a stall": {load: recorded.Load{Failing: from(40*time.Second, 200*ms)}},
		"a long outage": {
			load:   recorded.Load{Failing: from(40300*ms, 5*time.Second)},
			at:     40300 * ms,
			within: 10 * ms,
			why:    "an outage",
		},
		"an outage that goes on": {
			load:   recorded.Load{Failing: from(59*time.Second, time.Minute)},
			at:     59 * time.Second,
			within: 10 * ms,
			why:    "an outage",
		},
		"a dip": {
			load:   recorded.Load{Slow: from(40300*ms, 5*time.Second)},
			at:     40 * time.Second,
			within: time.Second,
			why:    "an anomaly",
		},
		"before the wait":       {load: recorded.Load{Failing: from(25*time.Second, time.Second)}},
		"begun before the wait": {load: recorded.Load{Failing: from(28*time.Second, 4*time.Second)}},
		"another fault's": {
			load:    recorded.Load{Failing: from(40*time.Second, time.Second), Slow: from(42*time.Second, 3*time.Second)},
			exclude: from(39*time.Second, 10*time.Second),
		},
		"after another fault's": {
			load: recorded.Load{
				Failing: []summary.Window{
					{From: 40 * time.Second, To: 41 * time.Second},
					{From: 55 * time.Second, To: 56 * time.Second},
				},
			},
			exclude: from(39*time.Second, 10*time.Second),
			at:      55 * time.Second,
			within:  10 * ms,
			why:     "an outage",
		},
		"the first of two": {
			load: recorded.Load{
				Failing: []summary.Window{
					{From: 40 * time.Second, To: 41 * time.Second},
					{From: 55 * time.Second, To: 56 * time.Second},
				},
			},
			at:     40 * time.Second,
			within: 10 * ms,
			why:    "an outage",
		},
	} {
		tc.load.Rate, tc.load.Length = 200, time.Minute
		got, found := BreakageSince(tc.load.Record(t), 30*time.Second, impact.Options{}, tc.exclude)
		if found != (tc.at > 0) {
			t.Errorf("%s: %v, %+v", name, found, got)
			continue
		}
		if d := got.At - tc.at; found && (d < -tc.within || d > tc.within || !strings.HasPrefix(got.Why, tc.why)) {
			t.Errorf("%s: at %s (%s), want %s at %s", name, got.At, got.Why, tc.why, tc.at)
		}
	}
}
