package engine

import (
	"math"
	"sync/atomic"
)

// budget is how many requests this pod may still send.
type budget struct{ left atomic.Int64 }

// claim takes up to n requests from the budget and returns how many it took.
func (b *budget) claim(n int) int {
	for {
		left := b.left.Load()
		if left == math.MaxInt64 {
			return n
		}
		k := min(int64(n), left)
		if k <= 0 || b.left.CompareAndSwap(left, left-k) {
			return int(max(k, 0))
		}
	}
}
