package workload

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/plan"
)

// text is a text split into literals and placeholders with their braces.
type text []string

// textArgs are the values of one request for the placeholders.
type textArgs struct {
	prefix string // of {key}
	key    int64
	number int64 // {int}
	user   int64
	seq    int64
}

// textPlaceholder is a placeholder, or a brace that begins none.
var textPlaceholder = regexp.MustCompile(`\\\{|\{(key|int|user|seq)\}`)

func cutText(s string) text {
	var t text
	from := 0
	for _, at := range textPlaceholder.FindAllStringIndex(s, -1) {
		if at[0] > from {
			t = append(t, s[from:at[0]])
		}
		t = append(t, strings.TrimPrefix(s[at[0]:at[1]], `\`))
		from = at[1]
	}
	if from < len(s) {
		t = append(t, s[from:])
	}
	return t
}

// with returns the text with the placeholders replaced.
func (t text) with(a *textArgs) string {
	if len(t) == 1 && t[0][0] != '{' {
		return t[0]
	}
	var out []byte
	for _, part := range t {
		switch part {
		case "{key}":
			out = strconv.AppendInt(append(out, a.prefix...), a.key, 10)
		case "{int}":
			out = strconv.AppendInt(out, a.number, 10)
		case "{user}":
			out = strconv.AppendInt(out, a.user, 10)
		case "{seq}":
			out = strconv.AppendInt(out, a.seq, 10)
		default:
			out = append(out, part...)
		}
	}
	return string(out)
}

// firstSeq is the first {seq} of source number, of that many, of a workload with a number of
// operations. Each further one of the source is of larger, so that no two sources of a run share a
// number.
// The sources of the preparation, one for each pod, have the numbers below 0. They send each
// operation once and use the numbers below operations*of, which the load leaves out.
func firstSeq(number, of int64, operations int) int64 {
	if number < 0 {
		return number + of
	}
	return number + of*int64(operations)
}

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
	d := &keyDraw{
		kind: k.Distribution,
		keys: k.Keys,
		from: from,
	}
	switch k.Distribution {
	case plan.Zipf:
		d.zipf = rand.NewZipf(from.rng, zipfExponent, 1, uint64(k.Keys-1))
	case plan.Sequential:
		d.next = int64(float64(k.Keys) * float64(max(number, 0)) / float64(of))
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
		k := math.Floor(n/2 + d.from.rng.NormFloat64()*n/6)
		if k >= 0 && k < n {
			return int64(k)
		}
	}
}

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
