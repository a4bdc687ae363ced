package clock

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// TestArrived compares stamps of the kernel with when the loop looked and read: a late delivery is no reason to
// mistrust them, a clock that was set is.
func TestArrived(t *testing.T) {
	const set = int64(time.Hour)
	r := &Clock{time.Now().Add(-time.Hour)}
	now := r.Now()
	for _, c := range []struct {
		name           string
		stamped, since int64 // before now
		set            int64 // by how much the wall clock was set since the offset was last read
		setBefore      int64 // when the offset was found to have changed, before now; 0 = never
		exact          bool
	}{
		{name: "after the look", stamped: 2 * ms, since: 3 * ms, exact: true},
		{name: "late reading", stamped: 300 * ms, since: 301 * ms, exact: true},
		{name: "late delivery", stamped: 54 * ms, since: 1 * ms, exact: true},
		{name: "late delivery, clock set long before", stamped: 54 * ms, since: 1 * ms, setBefore: 100 * ms, exact: true},
		{name: "clock set between stamp and look", stamped: 54 * ms, since: 1 * ms, setBefore: 20 * ms},
		{name: "clock set forward since the offset was read", stamped: 2 * ms, since: 3 * ms, set: set},
		{name: "clock set back since the offset was read", stamped: 2 * ms, since: 3 * ms, set: -set},
		{name: "slightly after the reading", stamped: -stampSlack / 2, exact: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := WallOffset{offset: r.wallOffset() - c.set, offsetAt: now - 200*ms}
			if c.setBefore > 0 {
				k.offsetFrom = now - c.setBefore
			}
			read := now
			at, exact := k.Arrived(r, now-c.stamped+r.wallOffset(), now-c.since, read)
			if want := min(now-c.stamped, read); exact != c.exact || exact && max(at-want, want-at) > stampSlack ||
				!exact && at != read {
				t.Errorf("arrived %d us before it was read, exact %v", (read-at)/1000, exact)
			}
		})
	}
}
