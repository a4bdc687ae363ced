package redisloadtest

import (
	"testing"

	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/runs"
)

// An evicted pod is gone a moment later: the message keeps what has shown first.
func TestFirstCauseOfALossIsKept(t *testing.T) {
	s := &scope.Test{Run: &runs.Run{}}
	for _, why := range []string{"evicted", "the pod was deleted"} {
		s.Lost = map[int]string{0: why}
		if keepFirstCauses(s); s.Lost[0] != "evicted" {
			t.Errorf("%s: %q", why, s.Lost[0])
		}
	}
}
