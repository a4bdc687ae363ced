package collect

import (
	"testing"
)

// The statuses of all pods together stay within a bound, and that of a single pod may have much to say.
func TestStatusesOfAllPodsAreBounded(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]int{1: 1 << 20, 64: 1 << 20, 1000: 67108, 5000: 64 << 10} {
		s := &Session{pods: make([]*pod, pods)}
		if got := s.largestStatus(); got != want || pods <= 1000 && got*pods > statuses {
			t.Errorf("%d pods: %d bytes each, want %d", pods, got, want)
		}
	}
}
