package workload

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/redquake/redquake/internal/plan"
)

// keyDraw draws the key numbers of one source, in [0, keys).
type keyDraw struct {
	kind    plan.Distribution
	keys    int64
	next    int64 // Sequential
	from    chance
	zipf    *zipf
	scatter *scatter // nil = hot keys are neighbours
	// Gaussian, in keys
	centre, deviation float64
}

// newKeyDraw returns the keyDraw of source number, of that many sources over all pods.
func newKeyDraw(k plan.Keyspace, number, of int64, from chance) *keyDraw {
	d := &keyDraw{
		kind: k.Distribution,
		keys: k.Keys,
		from: from,
	}
	switch k.Distribution {
	case plan.Zipf:
		d.zipf = newZipf(cmp.Or(k.ZipfExponent, plan.ZipfExponent), k.Keys)
	case plan.Gaussian:
		centre := plan.GaussianCentre
		if k.Centre != nil {
			centre = *k.Centre
		}
		d.centre = centre * float64(k.Keys)
		d.deviation = cmp.Or(k.Deviation, plan.GaussianDeviation) * float64(k.Keys)
	case plan.Sequential:
		d.next = int64(float64(k.Keys) * float64(max(number, 0)) / float64(of))
	}
	if k.Scattered {
		d.scatter = newScatter(k.Keys)
	}
	return d
}

func (d *keyDraw) draw() int64 {
	k := d.inOrder()
	if d.scatter != nil {
		return d.scatter.of(k)
	}
	return k
}

// inOrder draws a key number by the distribution, in which the hottest are neighbours.
func (d *keyDraw) inOrder() int64 {
	switch d.kind {
	case plan.Zipf:
		return d.zipf.draw(&d.from)
	case plan.Gaussian:
		return d.gaussian()
	case plan.Sequential:
		k := d.next % d.keys
		d.next = k + 1
		return k
	}
	return d.from.below(d.keys)
}

// gaussian repeats draws outside of the range: by default 0.27 % of them, as the ends are three
// standard deviations away; at most two of three.
func (d *keyDraw) gaussian() int64 {
	for {
		k := math.Floor(d.centre + d.from.rng.NormFloat64()*d.deviation)
		if k >= 0 && k < float64(d.keys) {
			return int64(k)
		}
	}
}

// zipf draws k in [0, keys) with P(k) ~ (1+k)^-s for any s above 0, by rejection-inversion
// (Hörmann, Derflinger 1996), which needs no table; that of math/rand needs s above 1.
type zipf struct {
	s           float64
	keys        int64
	first, last float64 // the integral of x^-s, less 1 at 1.5, and at keys + 0.5
	sure        float64 // a candidate is accepted if it is less above the inverse
}

func newZipf(s float64, keys int64) *zipf {
	z := &zipf{s: s, keys: keys}
	z.first, z.last = z.integral(1.5)-1, z.integral(float64(keys)+0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

func (z *zipf) draw(c *chance) int64 {
	for {
		u := z.last + c.rng.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(1, math.Floor(x+0.5)), float64(z.keys))
		if k-x <= z.sure || u >= z.integral(k+0.5)-z.weight(k) {
			return int64(k) - 1
		}
	}
}

func (z *zipf) weight(x float64) float64 {
	return math.Exp(-z.s * math.Log(x))
}

// integral is (x^(1-s) - 1) / (1-s), and log x for s = 1.
func (z *zipf) integral(x float64) float64 {
	logX := math.Log(x)
	t := (1 - z.s) * logX
	if math.Abs(t) < 1e-8 {
		return logX * (1 + t/2)
	}
	return math.Expm1(t) / t * logX
}

func (z *zipf) inverse(y float64) float64 {
	t := max(-1, y*(1-z.s)) // below by rounding only
	if math.Abs(t) < 1e-8 {
		return math.Exp(y * (1 - t/2))
	}
	return math.Exp(math.Log1p(t) / t * y)
}

// scatter is a permutation of the key numbers: neighbours become distant. It is the same for every
// seed, source and pod, so that all of them, and the next run, have the same hot keys.
type scatter struct {
	keys, mask uint64
	shift      int
}

func newScatter(keys int64) *scatter {
	width := bits.Len64(uint64(keys - 1))
	return &scatter{
		keys:  uint64(keys),
		mask:  1<<width - 1,
		shift: (width + 1) / 2,
	}
}

// of permutes the numbers below the next power of two, again until the result is a key: at most
// twice on average. Each step of a round can be undone: a product with an odd number, and an
// exclusive or with the own upper half.
func (s *scatter) of(k int64) int64 {
	if s.keys == 1 {
		return 0
	}
	x := uint64(k)
	for {
		for _, odd := range [...]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb} {
			x = (x + odd>>7) * odd & s.mask
			x ^= x >> s.shift
		}
		if x < s.keys {
			return int64(x)
		}
	}
}
