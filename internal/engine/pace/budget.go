package pace

import (
	"math"
	"sync/atomic"
)

// budget is how many requests this pod may still send.
type budget struct{ Left atomic.Int64 }

// Claim takes up to n requests from the budget and returns how many it took.
func (b *budget) Claim(n int) int {
	for {
		left := b.Left.Load()
		if left == math.MaxInt64 {
			return n
		}
		k := min(int64(n), left)
		if k <= 0 || b.Left.CompareAndSwap(left, left-k) {
			return int(max(k, 0))
		}
	}
}
