package resp

import (
	"bytes"
	"fmt"

	"github.com/redquake/redquake/internal/record"
)

// Kind is the kind of a reply, as far as the load needs it.
type Kind uint8

// The kinds.
const (
	OK    Kind = iota // any reply except errors and null
	Null              // the null reply of RESP2 ("$-1", "*-1") or RESP3 ("_")
	Error             // an error reply, or an aggregate with an error in it (EXEC)
)

var errLine = fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, MaxLine)

// Reply is one complete reply.
type Reply struct {
	Kind  Kind
	Class record.Class // of Error
	Bytes int          // of the reply on the wire, with pushes and attributes before it
}

// headMax is how much of a line that is split between reads is kept: enough for any number and for
// a redirection to any host name.
const headMax = 320

// Scanner scans a stream of replies, split between reads at any position, without keeping values.
// The zero value is ready for use.
// After an error it must be Reset: the stream cannot be scanned any further.
type Scanner struct {
	left [MaxDepth]int // missing elements per open aggregate
	// bit d: the aggregate at depth d is a push or an attribute, not (part of) the reply
	aside  uint32
	depth  int
	skip   int // missing bytes of a bulk string, including CR LF
	line   [headMax]byte
	kept   int // used bytes of line
	length int // bytes of the current line so far, including those that were not kept
	bytes  int // of the current reply so far
	reply  Reply
	begun  bool // the first element of the reply has been scanned
	// the message of the last reply that is an error: of its first error, without what is beyond
	// headMax
	failed []byte
}

// Reset discards an incomplete reply, for a new connection.
func (s *Scanner) Reset() {
	*s = Scanner{failed: s.failed[:0]}
}

// Message returns the beginning of the message of the last reply that was an error: "MOVED 3999
// 10.0.0.1:6379". It is valid until the next call of Next.
func (s *Scanner) Message() []byte {
	return s.failed
}

// Pending reports whether the current reply is incomplete.
func (s *Scanner) Pending() bool {
	return s.bytes > 0
}

// queued is the reply to a command in a transaction: it is not carried out until EXEC, which the load
// does not send. Only a proxy, or a server at fault, has a connection in that state.
const queued = "QUEUED"

// Next scans p up to the end of the first reply that ends in it. It returns the number of scanned
// bytes; if done, r is that reply, otherwise p was scanned completely. The error wraps ErrProtocol.
func (s *Scanner) Next(p []byte) (n int, r Reply, done bool, err error) {
	if s.bytes == 0 {
		if n = common(p); n > 0 {
			return n, Reply{Bytes: n}, true, nil
		}
	}
	return s.next(p)
}

// common returns the length of the reply at the start of p if that is a whole one of the most
// frequent kinds, otherwise 0: a short simple string or integer, or a bulk string of less than
// 10,000 bytes.
func common(p []byte) int {
	if len(p) < len("+\r\n") {
		return 0
	}
	switch p[0] {
	case '+', ':':
		if p[1] == queued[0] {
			return 0
		}
		for i, c := range p[1:min(len(p), 24)] {
			if c == '\n' {
				return i + 2
			}
		}
	case '$':
		size := 0
		for i, c := range p[1:min(len(p), 6)] {
			if digit := int(c) - '0'; uint(digit) <= 9 {
				size = size*10 + digit
				continue
			}
			n := 1 + i + len("\r\n") + size + len("\r\n")
			if i > 0 && c == '\r' && n <= len(p) && p[i+2] == '\n' {
				return n
			}
			return 0
		}
	}
	return 0
}

// next is Next without the shortcut.
func (s *Scanner) next(p []byte) (n int, r Reply, done bool, err error) {
	for n < len(p) {
		if s.skip > 0 {
			k := min(s.skip, len(p)-n)
			s.skip -= k
			s.bytes += k
			n += k
			if s.skip == 0 && s.element() {
				return n, s.finish(), true, nil
			}
			continue
		}
		i := bytes.IndexByte(p[n:], '\n')
		if i < 0 {
			rest := p[n:]
			s.kept += copy(s.line[s.kept:], rest)
			s.length += len(rest)
			s.bytes += len(rest)
			if s.length > MaxLine {
				return len(p), Reply{}, false, errLine
			}
			if !knownType(s.line[0]) {
				return len(p), Reply{}, false, unknownType(s.line[:s.kept])
			}
			return len(p), Reply{}, false, nil
		}
		if s.length+i > MaxLine {
			return n, Reply{}, false, errLine
		}
		line := p[n : n+i]
		s.bytes += i + 1
		n += i + 1
		if s.length > 0 {
			s.kept += copy(s.line[s.kept:], line)
			line = s.line[:s.kept]
			s.length, s.kept = 0, 0
		}
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		finished, err := s.header(line)
		if err != nil {
			return n, Reply{}, false, err
		}
		if finished {
			return n, s.finish(), true, nil
		}
	}
	return n, Reply{}, false, nil
}

// finish returns the reply and prepares for the next one.
func (s *Scanner) finish() Reply {
	r := s.reply
	r.Bytes = s.bytes
	s.reply, s.bytes, s.begun = Reply{}, 0, false
	return r
}

// header scans the first line of an element, and reports whether the reply ended with it.
func (s *Scanner) header(line []byte) (bool, error) {
	if len(line) == 0 {
		return false, fmt.Errorf("%w: an empty line", ErrProtocol)
	}
	body := line[1:]
	switch line[0] {
	case '+':
		if string(body) == queued {
			s.fail(body)
			return s.element(), nil
		}
		s.note(OK)
		return s.element(), nil
	case ':', ',', '#', '(':
		s.note(OK)
		return s.element(), nil
	case '_':
		s.note(Null)
		return s.element(), nil
	case '-':
		s.fail(body)
		return s.element(), nil
	case '$', '=', '!':
		return s.bulk(line[0], body)
	case '*', '~', '%', '>', '|':
		return s.aggregate(line[0], body)
	}
	return false, unknownType(line)
}

func (s *Scanner) bulk(kind byte, body []byte) (bool, error) {
	size, err := number(body, MaxBulk)
	if err != nil {
		return false, err
	}
	if size < 0 {
		s.note(Null)
		return s.element(), nil
	}
	if kind == '!' {
		// The message of a blob error is not scanned: no known error is longer than a line.
		s.fail(nil)
	} else {
		s.note(OK)
	}
	s.skip = size + 2
	return false, nil
}

func (s *Scanner) aggregate(kind byte, body []byte) (bool, error) {
	count, err := number(body, MaxCount)
	if err != nil {
		return false, err
	}
	aside := kind == '>' || kind == '|'
	if kind == '>' && s.depth > 0 {
		return false, fmt.Errorf("%w: a push within a reply", ErrProtocol)
	}
	if aside && count < 0 {
		return false, fmt.Errorf("%w: a push or an attribute that is null", ErrProtocol)
	}
	if !aside {
		if count < 0 {
			s.note(Null)
			return s.element(), nil
		}
		s.note(OK)
	}
	if kind == '%' || kind == '|' {
		count *= 2
	}
	if count <= 0 {
		return !aside && s.element(), nil
	}
	if s.depth == MaxDepth {
		return false, fmt.Errorf("%w: more than %d aggregates in one another", ErrProtocol, MaxDepth)
	}
	if aside {
		s.aside |= 1 << s.depth
	}
	s.left[s.depth] = count
	s.depth++
	return false, nil
}

// element counts a complete element and reports whether it was the reply's last.
func (s *Scanner) element() bool {
	for s.depth > 0 {
		s.left[s.depth-1]--
		if s.left[s.depth-1] > 0 {
			return false
		}
		s.depth--
		if s.aside&(1<<s.depth) != 0 {
			s.aside &^= 1 << s.depth
			return false
		}
	}
	return true
}

// note records the kind of the reply's first element.
func (s *Scanner) note(k Kind) {
	if !s.begun && s.aside == 0 {
		s.reply.Kind, s.begun = k, true
	}
}

// fail makes the reply an error, at any position of the error in the reply; the first error
// determines the class.
func (s *Scanner) fail(message []byte) {
	if s.aside != 0 {
		return
	}
	if s.reply.Kind != Error {
		s.reply.Class = Classify(message)
		s.failed = append(s.failed[:0], message[:min(len(message), headMax)]...)
	}
	s.reply.Kind, s.begun = Error, true
}

// number reads a length: decimal digits up to limit, or -1.
func number(b []byte, limit int) (int, error) {
	if len(b) == 2 && b[0] == '-' && b[1] == '1' {
		return -1, nil
	}
	if len(b) == 0 || len(b) > 10 {
		return 0, fmt.Errorf("%w: the length %q", ErrProtocol, clip(b))
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: the length %q", ErrProtocol, clip(b))
		}
		n = n*10 + int(c-'0')
	}
	if n > limit {
		return 0, fmt.Errorf("%w: the length %d is over the limit of %d", ErrProtocol, n, limit)
	}
	return n, nil
}

func knownType(c byte) bool {
	return bytes.IndexByte([]byte("+-:,#(_$=!*~%>|"), c) >= 0
}

func unknownType(line []byte) error {
	return &UnknownTypeError{Head: bytes.Clone(clip(line))}
}

// clip limits the part of the input that an error message contains.
func clip(b []byte) []byte {
	return b[:min(len(b), 32)]
}

// Classify returns the class of an error reply by its first word: "READONLY You can't write against
// a read only replica." Other prefixes than the known ones are ClassOther, including ERR and
// WRONGTYPE.
func Classify(message []byte) record.Class {
	word := message
	if i := bytes.IndexByte(message, ' '); i >= 0 {
		word = message[:i]
	}
	switch string(word) {
	case "READONLY":
		return record.ClassReadOnly
	case "NOREPLICAS":
		return record.ClassNoReplicas
	case "MOVED", "ASK", "TRYAGAIN", "CROSSSLOT":
		return record.ClassMoved
	case "CLUSTERDOWN":
		return record.ClassClusterDown
	case "LOADING":
		return record.ClassLoading
	case "MASTERDOWN":
		return record.ClassMasterDown
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return record.ClassAuth
	case "OOM":
		return record.ClassOOM
	case "BUSY":
		return record.ClassBusy
	case "MISCONF":
		return record.ClassMisconf
	}
	return record.ClassOther
}
