// Package wire encodes and decodes the messages between a load agent and the adapter of a client
// library, as clients/PROTOCOL.md describes them. What an adapter sends is not trusted: every
// length, type and range is checked, and nothing is allocated for a length that has not arrived.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tinylib/msgp/msgp"
)

// Version is the version of the protocol.
const Version = 1

// The limits of messages, see clients/PROTOCOL.md.
const (
	MaxMessage  = 16 << 20 // bytes
	MaxText     = 1000     // bytes of a message to people
	maxName     = 128      // bytes
	maxOptions  = 200
	maxOption   = 256 // bytes
	maxDepth    = 16
	maxInFlight = 100_000
	maxValues   = 2_000_000 // of all replies in a message: some 100 MB
)

// The names of the messages.
const (
	NameHello    = "hello"
	NameConnect  = "connect"
	NameRefused  = "refused"
	NameReady    = "ready"
	NameRequests = "requests"
	NameOutcomes = "outcomes"
	NamePing     = "ping"
	NamePong     = "pong"
)

// Reader reads messages.
type Reader struct {
	from    io.Reader
	message []byte
}

// NewReader returns a reader of the messages of a connection.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: from}
}

// Next returns the name of the next message, and its fields, which are valid until the next call.
// The error is io.EOF if the connection ended between two messages.
func (r *Reader) Next() (string, *Fields, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return "", nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > MaxMessage {
		return "", nil, fmt.Errorf("a message of %d bytes; at most %d are allowed", length, MaxMessage)
	}
	if err := r.fill(int(length)); err != nil {
		return "", nil, err
	}
	d := &Fields{rest: r.message}
	d.left = d.array()
	d.expect(1)
	name := d.text(maxName)
	if d.err != nil {
		return "", nil, fmt.Errorf("the start of a message: %w", d.err)
	}
	return name, d, nil
}

// idle is the size of the buffer that a reader keeps for messages of usual size.
const idle = 1 << 20

// fill reads a message of the given length, growing with what arrives.
func (r *Reader) fill(length int) error {
	if cap(r.message) > idle && length <= idle {
		r.message = nil
	}
	r.message = r.message[:0]
	for len(r.message) < length {
		have := len(r.message)
		step := min(length-have, idle)
		if cap(r.message)-have < step {
			r.message = append(r.message, make([]byte, step)...)
		}
		r.message = r.message[:have+step]
		if _, err := io.ReadFull(r.from, r.message[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// Write sends a message.
func Write(to io.Writer, message []byte) error {
	frame := make([]byte, 0, 4+len(message))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(message)))
	_, err := to.Write(append(frame, message...))
	return err
}

// Batch collects the items of messages that are lists: requests and outcomes.
type Batch struct {
	Name  string
	items []byte
	ends  []int // of each item in items
}

// Add adds an item, which appendTo appends to the slice that it gets.
func (b *Batch) Add(appendTo func([]byte) []byte) {
	b.items = appendTo(b.items)
	b.ends = append(b.ends, len(b.items))
}

// Len is the number of items.
func (b *Batch) Len() int {
	return len(b.ends)
}

// headroom is more than the bytes of a list's message beside its items.
const headroom = 64

// Fits reports whether an item of so many bytes can be sent.
func Fits(item int) bool {
	return item <= MaxMessage-headroom
}

// Send sends the items in as few messages as they fit into, and removes them.
func (b *Batch) Send(to io.Writer) error {
	from := 0 // in items
	var frame []byte
	for first := 0; first < len(b.ends); {
		next := first + 1
		for next < len(b.ends) && Fits(b.ends[next]-from) {
			next++
		}
		frame = append(frame[:0], 0, 0, 0, 0)
		frame = msgp.AppendArrayHeader(frame, 2)
		frame = msgp.AppendString(frame, b.Name)
		frame = msgp.AppendArrayHeader(frame, uint32(next-first))
		frame = append(frame, b.items[from:b.ends[next-1]]...)
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		if _, err := to.Write(frame); err != nil {
			return err
		}
		from, first = b.ends[next-1], next
	}
	b.Reset()
	return nil
}

// Reset removes all items.
func (b *Batch) Reset() {
	if cap(b.items) > idle {
		b.items = nil
	}
	b.items, b.ends = b.items[:0], b.ends[:0]
}
