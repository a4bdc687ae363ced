//go:build integration

package bottleneck

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A real Redis whose disk takes fifty writes per second, and that waits for an fsync before each reply, is limited by
// its disk, whether or not its version reports for how long it waits, and whether or not the load generator did not run
// for a part of the time, as on a busy machine.
func TestASlowDiskOfARealRedis(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("slowing a disk takes root, for a cgroup")
	}
	redistest.Each(t, func(t *testing.T) {
		server := redistest.NewServer(t, redistest.Options{Config: []string{"appendonly yes", "appendfsync always"}})
		throttleWrites(t, pid(t, server), server.Dir, 50)
		p := set(server.Address(), 4, 0)
		p.Shape.Duration = time.Minute
		want := "Redis waited for its disk for "
		if redistest.ReleaseOf(t) == redistest.Redis7 {
			want = "Redis waited for its disk or for a CPU: half of the requests took "
		}
		find := func(s *merged.Series) Finding {
			in := Of(p, s)
			in.MeasuredFrom = recordedFrom
			return Find(in)
		}
		found := func(s *merged.Series) bool {
			got := find(s)
			return got.Component == Disk && strings.HasPrefix(got.Evidence, want) && s.End() > recordedFrom+4*time.Second
		}
		s := recordUntil(t, p, nil, found)
		if got := find(s); !found(s) {
			t.Errorf("%s: %s\nwant %s: %s", got.Component, got.Evidence, Disk, want)
		} else {
			t.Log(got.Evidence)
		}
	})
}
