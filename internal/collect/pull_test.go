package collect

import (
	"testing"

	"github.com/redquake/redquake/internal/agent"
)

// After an absence of the operator every pod has megabytes to tell: all answers together stay within a bound, and a single pod is not slowed down.
func TestAnswersOfAllPodsAreBounded(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]int{1: agent.MaxBatch, 16: agent.MaxBatch, 64: 1 << 20, 1000: 67108, 5000: 64 << 10} {
		s := &Session{pods: make([]*pod, pods)}
		if got := s.largestPull(); got != want || pods <= 1000 && got*pods > pullsAtOnce {
			t.Errorf("%d pods: %d bytes each, want %d", pods, got, want)
		}
	}
}
