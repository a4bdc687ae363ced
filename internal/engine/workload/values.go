package workload

import (
	"math/rand/v2"

	"github.com/redquake/redquake/internal/plan"
)

// valueSpread is how many different windows there are on the random bytes.
const valueSpread = 64 << 10

// valuePool is random bytes made once; a value is a window on them. Read-only, shared by all sources.
type valuePool struct {
	bytes    []byte
	min, max int
}

func newValuePool(v plan.Values) *valuePool {
	p := &valuePool{bytes: make([]byte, v.MaxBytes+valueSpread), min: v.MinBytes, max: v.MaxBytes}
	rand.NewChaCha8([32]byte{}).Read(p.bytes)
	return p
}

// draw is one value. It must not be written to.
func (p *valuePool) draw(c *chance) []byte {
	size := p.max
	if p.min < p.max {
		size = p.min + int(c.below(int64(p.max-p.min+1)))
	}
	from := int(c.below(valueSpread))
	return p.bytes[from : from+size]
}
