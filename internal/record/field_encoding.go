package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt is wrapped by every decoding error.
var ErrCorrupt = errors.New("corrupt record")

// appendInt uses zigzag encoding: small numbers of either sign are short.
func appendInt(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

func appendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

func appendText(dst []byte, s string) []byte { return append(appendUint(dst, uint64(len(s))), s...) }

func appendUint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// appendList writes the number of items, then each with item.
func appendList[T any](dst []byte, list []T, item func([]byte, *T) []byte) []byte {
	dst = appendUint(dst, uint64(len(list)))
	for i := range list {
		dst = item(dst, &list[i])
	}
	return dst
}

// readList reads the output of appendList, each item with item, which reads at least size bytes; nil if there is none.
func readList[T any](r *reader, size int, item func(*T)) []T {
	n := r.count(size)
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		item(&list[i])
	}
	return list
}

// reader decodes the output of the append functions. After the first error it returns zeros and keeps the error in err.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail("number cut short or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) float() float64 {
	if len(r.rest) < 8 {
		r.fail("number cut short")
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	r.rest = r.rest[8:]
	return v
}

func (r *reader) text() string { return string(r.bytes()) }

// bytes reads a text without copying it; nil if it is empty.
func (r *reader) bytes() []byte {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) bool() bool {
	switch r.uint() {
	case 0:
		return false
	case 1:
		return true
	}
	r.fail("neither true nor false")
	return false
}

// count reads the number of following items, each at least size bytes long. A number that exceeds the remaining input is an error, so that
// allocations are proportional to the input.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.rest)/size) {
		r.fail("%d items in %d bytes", n, len(r.rest))
		return 0
	}
	return int(n)
}

func (r *reader) uint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most numbers are small
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail("number cut short or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
		r.rest = nil
	}
}
