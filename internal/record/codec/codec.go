// Package codec writes and reads the fields of records: numbers as varints, texts, booleans, lists.
// Readers allocate in proportion to their input.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt is wrapped by every decoding error.
var ErrCorrupt = errors.New("corrupt record")

// AppendInt uses zigzag encoding: small numbers of either sign are short.
func AppendInt(dst []byte, v int64) []byte {
	return binary.AppendVarint(dst, v)
}

// AppendFloat writes the 8 bytes of v.
func AppendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// AppendText writes the length of s and s.
func AppendText(dst []byte, s string) []byte {
	return append(AppendUint(dst, uint64(len(s))), s...)
}

// AppendUint writes a number: small ones are short.
func AppendUint(dst []byte, v uint64) []byte {
	return binary.AppendUvarint(dst, v)
}

// AppendBool writes one byte.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendList writes the number of items, then each with item.
func AppendList[T any](dst []byte, list []T, item func([]byte, *T) []byte) []byte {
	dst = AppendUint(dst, uint64(len(list)))
	for i := range list {
		dst = item(dst, &list[i])
	}
	return dst
}

// ReadList reads the output of AppendList, each item with item, which reads at least size bytes;
// nil if there is none.
func ReadList[T any](r *Reader, size int, item func(*T)) []T {
	n := r.Count(size)
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		item(&list[i])
	}
	return list
}

// Reader decodes the output of the append functions. After the first error it returns zeros. It is
// not safe for concurrent use.
type Reader struct {
	rest []byte
	err  error // the first one
}

// NewReader returns a reader of b, which must not be modified as long as it is read.
func NewReader(b []byte) *Reader {
	return &Reader{rest: b}
}

// Int reads the output of AppendInt.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.Fail("number cut short or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Float reads the output of AppendFloat.
func (r *Reader) Float() float64 {
	if len(r.rest) < 8 {
		r.Fail("number cut short")
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	r.rest = r.rest[8:]
	return v
}

// Text reads the output of AppendText.
func (r *Reader) Text() string {
	return string(r.Bytes())
}

// Bytes reads a text without copying it: it shares the memory of the input; nil if it is empty.
func (r *Reader) Bytes() []byte {
	n := r.Count(1)
	if n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Bool reads the output of AppendBool.
func (r *Reader) Bool() bool {
	switch r.Uint() {
	case 0:
		return false
	case 1:
		return true
	}
	r.Fail("neither true nor false")
	return false
}

// Count reads the number of following items, each at least size bytes long. A number that exceeds
// the remaining input is an error, so that allocations are proportional to the input.
func (r *Reader) Count(size int) int {
	n := r.Uint()
	if n > uint64(len(r.rest)/size) {
		r.Fail("%d items in %d bytes", n, len(r.rest))
		return 0
	}
	return int(n)
}

// Uint reads the output of AppendUint.
func (r *Reader) Uint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most numbers are small
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail("number cut short or too long")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Small reads a number that fits an int of 32 bits.
func (r *Reader) Small() int {
	v := r.Uint()
	if v > math.MaxInt32 {
		r.Fail("number %d too large", v)
		return 0
	}
	return int(v)
}

// Below reads a number in [0, limit).
func (r *Reader) Below(limit int) int {
	v := r.Uint()
	if v >= uint64(limit) {
		r.Fail("number %d, the limit is %d", v, limit)
		return 0
	}
	return int(v)
}

// Texts reads a list of texts; nil if there is none.
func (r *Reader) Texts() []string {
	return ReadList(r, 1, func(t *string) { *t = r.Text() })
}

// Left is the number of bytes that are not read yet.
func (r *Reader) Left() int {
	return len(r.rest)
}

// Err returns the first error, which wraps ErrCorrupt.
func (r *Reader) Err() error {
	return r.err
}

// End returns the first error; that there are bytes left is one.
func (r *Reader) End() error {
	if len(r.rest) > 0 {
		r.Fail("%d bytes too many", len(r.rest))
	}
	return r.err
}

// Fail makes Corrupt(format, args...) the error, unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = Corrupt(format, args...)
		r.rest = nil
	}
}

// Corrupt returns an error that wraps ErrCorrupt.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
