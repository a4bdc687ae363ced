package workload

import (
	"math/rand/v2"

	"github.com/redquake/redquake/internal/plan"
)

// valueSpread is the number of different windows on the random bytes.
const valueSpread = 64 << 10

// valuePool is a buffer of random bytes, generated once; a value is a window on it. It is read-only
// and shared by all sources.
type valuePool struct {
	bytes    []byte
	min, max int
}

func newValuePool(v plan.Values) *valuePool {
	p := &valuePool{
		bytes: make([]byte, v.MaxBytes+valueSpread),
		min:   v.MinBytes,
		max:   v.MaxBytes,
	}
	rand.NewChaCha8([32]byte{}).Read(p.bytes)
	return p
}

// draw returns a value, which must not be modified.
func (p *valuePool) draw(c *chance) []byte {
	size := p.max
	if p.min < p.max {
		size = p.min + int(c.below(int64(p.max-p.min+1)))
	}
	from := int(c.below(valueSpread))
	return p.bytes[from : from+size]
}
