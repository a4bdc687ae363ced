package workload

import (
	"math"
	"math/rand/v2"

	"github.com/redquake/redquake/internal/plan"
)

// zipfExponent is s in P(k) ~ (1+k)^-s.
const zipfExponent = 1.1

// keyDraw draws the key numbers of one source, in [0, keys).
type keyDraw struct {
	kind plan.Distribution
	keys int64
	next int64 // Sequential
	from chance
	zipf *rand.Zipf
}

// newKeyDraw returns the keyDraw of source number, of that many sources over all pods.
func newKeyDraw(k plan.Keyspace, number, of int64, from chance) *keyDraw {
	d := &keyDraw{kind: k.Distribution, keys: k.Keys, from: from}
	switch k.Distribution {
	case plan.Zipf:
		d.zipf = rand.NewZipf(from.rng, zipfExponent, 1, uint64(k.Keys-1))
	case plan.Sequential:
		d.next = int64(float64(k.Keys) * float64(number) / float64(of))
	}
	return d
}

func (d *keyDraw) draw() int64 {
	switch d.kind {
	case plan.Zipf:
		return int64(d.zipf.Uint64())
	case plan.Gaussian:
		return d.gaussian()
	case plan.Sequential:
		k := d.next % d.keys
		d.next = k + 1
		return k
	}
	return d.from.below(d.keys)
}

// gaussian repeats draws outside of the range: 0.27 % of them, as the ends are three standard
// deviations away.
func (d *keyDraw) gaussian() int64 {
	n := float64(d.keys)
	for {
		if k := math.Floor(n/2 + d.from.rng.NormFloat64()*n/6); k >= 0 && k < n {
			return int64(k)
		}
	}
}
