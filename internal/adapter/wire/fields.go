package wire

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Fields reads the fields of a message one after the other. After the first error it reads nothing
// more, and the message's own reader returns that error.
type Fields struct {
	rest []byte
	left int // fields that have not been read
	err  error
	// values of replies so far in the message: what they need in memory is many times their bytes
	values int
}

// fail keeps the first error.
func (f *Fields) fail(err error) {
	if f.err == nil && err != nil {
		f.err = err
		if errors.Is(err, msgp.ErrShortBytes) {
			f.err = errors.New("it ends too early")
		}
	}
}

// array reads the header of an array and returns its length, which is not above what the rest of
// the message can hold.
func (f *Fields) array() int {
	if f.err != nil {
		return 0
	}
	size, rest, err := msgp.ReadArrayHeaderBytes(f.rest)
	return f.size(size, 1, rest, err)
}

// mapping reads the header of a map and returns its length.
func (f *Fields) mapping() int {
	if f.err != nil {
		return 0
	}
	size, rest, err := msgp.ReadMapHeaderBytes(f.rest)
	return f.size(size, 2, rest, err)
}

// size takes over the header of an array or a map whose elements have at least so many bytes.
func (f *Fields) size(size uint32, each int, rest []byte, err error) int {
	if err != nil {
		f.fail(err)
		return 0
	}
	if int64(size)*int64(each) > int64(len(rest)) {
		f.fail(fmt.Errorf("%d elements in %d bytes", size, len(rest)))
		return 0
	}
	f.rest = rest
	return int(size)
}

// each calls one for each of n elements, until an error.
func (f *Fields) each(n int, one func()) {
	for range n {
		if f.err != nil {
			return
		}
		one()
	}
}

// items reads a list whose items are arrays of at least so many fields, with one.
func (f *Fields) items(fields int, one func(item *Fields)) {
	f.each(f.array(), func() {
		item := Fields{rest: f.rest, values: f.values}
		item.left = item.array()
		item.expect(fields)
		one(&item)
		item.skipRest()
		f.rest, f.values = item.rest, item.values
		f.fail(item.err)
	})
}

// expect makes sure that so many fields are there, which are read next.
func (f *Fields) expect(fields int) {
	if f.left < fields {
		f.fail(fmt.Errorf("%d fields instead of %d", f.left, fields))
	}
	f.left -= fields
}

// skipRest skips the fields that later versions may have added.
func (f *Fields) skipRest() {
	for f.err == nil && f.left > 0 {
		f.left--
		f.skip(0)
	}
}

func (f *Fields) skip(depth int) {
	if depth > maxDepth {
		f.fail(fmt.Errorf("it is nested more than %d deep", maxDepth))
	}
	if f.err != nil {
		return
	}
	switch msgp.NextType(f.rest) {
	case msgp.ArrayType:
		f.each(f.array(), func() { f.skip(depth + 1) })
	case msgp.MapType:
		f.each(2*f.mapping(), func() { f.skip(depth + 1) })
	default:
		rest, err := msgp.Skip(f.rest)
		if err != nil {
			f.fail(err)
			return
		}
		f.rest = rest
	}
}

// isNil reports whether the next element is nil, and skips it then.
func (f *Fields) isNil() bool {
	if f.err != nil || !msgp.IsNil(f.rest) {
		return false
	}
	f.rest, _ = msgp.ReadNilBytes(f.rest)
	return true
}

// text reads a text of at most so many bytes.
func (f *Fields) text(most int) string {
	if f.err != nil {
		return ""
	}
	text, rest, err := msgp.ReadStringZC(f.rest)
	switch {
	case err != nil:
		f.fail(err)
		return ""
	case len(text) > most:
		f.fail(fmt.Errorf("a text of %d bytes; at most %d are allowed", len(text), most))
		return ""
	case !utf8.Valid(text):
		f.fail(errors.New("a text is not UTF-8"))
		return ""
	}
	f.rest = rest
	return string(text)
}

func (f *Fields) integer() int64 {
	if f.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadInt64Bytes(f.rest)
	if err != nil {
		f.fail(err)
		return 0
	}
	f.rest = rest
	return n
}

func (f *Fields) unsigned() uint64 {
	if f.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadUint64Bytes(f.rest)
	if err != nil {
		f.fail(err)
		return 0
	}
	f.rest = rest
	return n
}

// bytes reads a binary text, without a copy; a string is taken for one.
func (f *Fields) bytes() []byte {
	if f.err != nil {
		return nil
	}
	var text, rest []byte
	var err error
	if msgp.NextType(f.rest) == msgp.StrType {
		text, rest, err = msgp.ReadStringZC(f.rest)
	} else {
		text, rest, err = msgp.ReadBytesZC(f.rest)
	}
	if err != nil {
		f.fail(err)
		return nil
	}
	f.rest = rest
	return text
}

// reply reads the reply to a command.
func (f *Fields) reply(depth int) resp.Value {
	if depth > maxDepth {
		f.fail(fmt.Errorf("a reply is nested more than %d deep", maxDepth))
	}
	if f.values++; f.values > maxValues {
		f.fail(fmt.Errorf("more than %d values of replies", maxValues))
	}
	if f.err != nil {
		return resp.Value{}
	}
	switch kind := msgp.NextType(f.rest); kind {
	case msgp.NilType:
		f.isNil()
		return resp.Value{Type: '_'}
	case msgp.BoolType:
		yes, rest, err := msgp.ReadBoolBytes(f.rest)
		f.rest = rest
		f.fail(err)
		return resp.Value{Type: '#', Text: map[bool]string{true: "t", false: "f"}[yes]}
	case msgp.IntType:
		return resp.Value{Type: ':', Text: strconv.FormatInt(f.integer(), 10)}
	case msgp.UintType:
		return resp.Value{Type: ':', Text: strconv.FormatUint(f.unsigned(), 10)}
	case msgp.Float32Type, msgp.Float64Type:
		return resp.Value{Type: ',', Text: strconv.FormatFloat(f.float(), 'g', -1, 64)}
	case msgp.StrType, msgp.BinType:
		return resp.Value{Type: '$', Text: string(f.bytes())}
	case msgp.ArrayType:
		v := resp.Value{Type: '*'}
		f.each(f.array(), func() { v.Items = append(v.Items, f.reply(depth+1)) })
		return v
	default:
		f.fail(fmt.Errorf("a reply has the type %s", kind))
		return resp.Value{}
	}
}

func (f *Fields) float() float64 {
	if f.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadFloat64Bytes(f.rest)
	if err != nil {
		f.fail(err)
		return 0
	}
	f.rest = rest
	return n
}

// scalar reads the value of an option as text.
func (f *Fields) scalar() string {
	switch kind := msgp.NextType(f.rest); {
	case f.err != nil:
		return ""
	case kind == msgp.StrType:
		return f.text(maxOption)
	case kind == msgp.NilType, kind == msgp.BoolType, kind == msgp.IntType,
		kind == msgp.UintType, kind == msgp.Float32Type, kind == msgp.Float64Type:
		v := f.reply(0)
		switch {
		case v.Type == '_':
			return "none"
		case v.Type == '#':
			return map[string]string{"t": "true", "f": "false"}[v.Text]
		}
		return v.Text
	default:
		f.fail(fmt.Errorf("an option has the type %s", kind))
		return ""
	}
}
