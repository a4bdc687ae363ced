package readings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
)

// TestBusiestStretch: the stretches end with a reading, are 5 s long or little more, and within one process.
func TestBusiestStretch(t *testing.T) {
	t.Parallel()
	var r recent
	cpu := 0.0
	for _, c := range []struct {
		at         float64 // seconds
		cpu        float64 // cores since the reading before
		from, used float64 // of the stretch; from < 0 = none
	}{
		{0, 0, -1, 0},
		{1, 0.2, -1, 0},
		{2, 0.2, -1, 0},
		{3, 0.2, -1, 0},
		{4.5, 0.2, -1, 0},
		{4.6, 1, -1, 0},
		{5.1, 1, 0, 0.9 + 0.6},
		{6, 1, 1, 0.7 + 1.5},
		{5.5, 1, -1, 0}, // late: ignored
		{20, 0, 6, 0},   // the readings are far apart
		{21, 0.5, 6, 0.5},
		{26, 0.5, 21, 2.5},
		{27, -9, -1, 0}, // another process
		{31, 0.5, -1, 0},
		{32, 0.5, 27, 2.5},
	} {
		if n := len(r); n > 0 {
			cpu = r[n-1].cpu + c.cpu*(c.at-float64(r[n-1].at)/1e9)
		}
		got := r.add(counters{at: int64(c.at * 1e9), cpu: cpu, commands: int64(c.at)})
		want := record.Busy{}
		if c.from >= 0 {
			want = record.Busy{
				From:     int64(c.from * 1e9),
				To:       int64(c.at * 1e9),
				CPU:      int64(c.used*1e6 + 0.5),
				Commands: int64(c.at) - int64(c.from),
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %v s (-want +got):\n%s", c.at, diff)
		}
	}
}

// TestBusierStretch: the order in which stretches are compared does not matter, and one in which nothing was used is
// none.
func TestBusierStretch(t *testing.T) {
	t.Parallel()
	second := int64(time.Second)
	more := record.Busy{From: 0, To: 5 * second, CPU: 500}
	equal := record.Busy{From: 5 * second, To: 15 * second, CPU: 1000}
	less := record.Busy{From: 2 * second, To: 7 * second, CPU: 499, Throttled: 1}
	for _, c := range []struct {
		a, b, want record.Busy
		figure     func(*record.Busy) int64
	}{
		{more, less, more, cpu},
		{more, equal, more, cpu},
		{more, less, less, throttled},
		{more, record.Busy{}, more, cpu},
		{more, record.Busy{}, record.Busy{}, throttled},
		{more, equal, record.Busy{}, mainThread},
	} {
		if got, other := busier(c.a, c.b, c.figure), busier(c.b, c.a, c.figure); got != c.want || other != c.want {
			t.Errorf("of %+v and %+v: %+v, %+v", c.a, c.b, got, other)
		}
	}
}
