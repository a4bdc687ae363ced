package redisloadtest

import (
	"testing"

	"github.com/redquake/redquake/internal/runs"
)

// An evicted pod is gone a moment later: the message keeps what has shown first.
func TestFirstCauseOfALossIsKept(t *testing.T) {
	s := &scope{run: &runs.Run{}}
	for _, why := range []string{"evicted", "the pod was deleted"} {
		s.lost = map[int]string{0: why}
		if s.keepFirstCauses(); s.lost[0] != "evicted" {
			t.Errorf("%s: %q", why, s.lost[0])
		}
	}
}
