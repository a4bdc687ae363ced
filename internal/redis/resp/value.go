package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Value is one complete reply. Which fields are set depends on Type, the reply's first byte.
type Value struct {
	Type  byte    // '+' '-' ':' '$' '*' and so on; '_' for every null
	Text  string  // unless it is an aggregate: the line or the bulk string
	Items []Value // of an aggregate; alternating keys and values of a map
}

// IsError reports whether the reply is an error; Text is its message.
func (v Value) IsError() bool {
	return v.Type == '-' || v.Type == '!'
}

// maxValue bounds the memory of a reply that ReadValue keeps: its bytes, and valueCost for each
// element.
const (
	maxValue  = 16 << 20
	valueCost = 64
)

// LargeReply is the size in bytes from which ReadLarge treats a reply as large.
const LargeReply = 256 << 10

// chunk is how much memory a bulk string takes before more of it has arrived: its announced length
// may be a lie.
const chunk = 64 << 10

// budget is what is left of the memory for a reply.
type budget struct {
	left int
	// called once, before the reply takes more than LargeReply; nil = it need not be
	large func() error
}

func (b *budget) take(n int) error {
	if b.left -= n; b.left < 0 {
		return tooLarge()
	}
	ask := b.large
	if ask != nil && maxValue-b.left > LargeReply {
		b.large = nil
		return ask()
	}
	return nil
}

// ReadValue reads the next reply; it drops pushes and attributes before it. Invalid input is an
// error that wraps ErrProtocol, including replies of more than 16 MiB or more than MaxDepth nested
// aggregates; other errors are the reader's.
func ReadValue(r *bufio.Reader) (Value, error) {
	return ReadLarge(r, nil)
}

// ReadLarge is ReadValue which calls large before a reply takes more than LargeReply, and ends with
// its error.
func ReadLarge(r *bufio.Reader, large func() error) (Value, error) {
	within := budget{left: maxValue, large: large}
	for {
		v, err := readValue(r, 0, &within)
		if err != nil || v.Type != '>' {
			return v, err
		}
	}
}

func readValue(r *bufio.Reader, depth int, within *budget) (Value, error) {
	if depth > MaxDepth {
		return Value{}, fmt.Errorf("%w: more than %d aggregates in one another", ErrProtocol, MaxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return Value{}, err
	}
	if err := within.take(len(line) + valueCost); err != nil {
		return Value{}, err
	}
	kind, body := line[0], line[1:]
	switch kind {
	case '+', '-', ':', ',', '#', '(':
		return Value{Type: kind, Text: string(body)}, nil
	case '_':
		return Value{Type: '_'}, nil
	case '$', '=', '!':
		return readBulk(r, kind, body, within)
	case '*', '~', '%', '>', '|':
		if kind == '>' && depth > 0 {
			return Value{}, fmt.Errorf("%w: a push within a reply", ErrProtocol)
		}
		return readAggregate(r, kind, body, depth, within)
	}
	return Value{}, unknownType(line)
}

func readBulk(r *bufio.Reader, kind byte, body []byte, within *budget) (Value, error) {
	size, err := number(body, MaxBulk)
	if err != nil {
		return Value{}, err
	}
	if size < 0 {
		return Value{Type: '_'}, nil
	}
	if err := within.take(size + 2); err != nil {
		return Value{}, err
	}
	text, err := readText(r, size+2)
	if err != nil {
		return Value{}, err
	}
	text = text[:size]
	if kind == '=' && size >= 4 { // a verbatim string begins with its format: "txt:"
		text = text[4:]
	}
	return Value{Type: kind, Text: string(text)}, nil
}

// readText reads so many bytes. It takes memory as they arrive.
func readText(r *bufio.Reader, size int) ([]byte, error) {
	text := make([]byte, min(size, chunk))
	for read := 0; ; {
		n, err := io.ReadFull(r, text[read:])
		if read += n; err != nil {
			if read > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if read == size {
			return text, nil
		}
		text = slices.Grow(text, min(size, 2*read)-read)[:min(size, 2*read)]
	}
}

func readAggregate(
	r *bufio.Reader, kind byte, body []byte, depth int, within *budget,
) (Value, error) {
	count, err := number(body, MaxCount)
	if err != nil {
		return Value{}, err
	}
	if count < 0 {
		if kind == '>' || kind == '|' {
			return Value{}, fmt.Errorf("%w: a push or an attribute that is null", ErrProtocol)
		}
		return Value{Type: '_'}, nil
	}
	if kind == '%' || kind == '|' {
		count *= 2
	}
	v := Value{Type: kind}
	for range count {
		item, err := readValue(r, depth+1, within)
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, item)
	}
	if kind == '|' { // attributes precede the value to which they belong
		// one level deeper, so that a chain of attributes is bounded as well
		return readValue(r, depth+1, within)
	}
	return v, nil
}

// readLine reads a line without its end; it is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(1)
	if err != nil {
		return nil, err
	}
	// checked early: a server that does not use RESP may never send the end of a line
	if !knownType(head[0]) {
		head, _ = r.Peek(r.Buffered())
		return nil, unknownType(head)
	}
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, r.Size())
	}
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if len(line) == 0 {
		return nil, fmt.Errorf("%w: an empty line", ErrProtocol)
	}
	return line, nil
}

func tooLarge() error {
	return fmt.Errorf("%w: a reply of more than %d bytes", ErrProtocol, maxValue)
}
