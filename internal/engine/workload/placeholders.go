package workload

import (
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
