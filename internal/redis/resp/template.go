package resp

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Args are the values of one request for the placeholders of its template.
type Args struct {
	Key   int64  // {key}: the prefix and this number
	Value []byte // {value}
	Int   int64  // {int}
	User  int64  // {user}
	Seq   uint64 // {seq}
}

// placeholder is a placeholder of a template.
type placeholder uint8

const (
	literal placeholder = iota
	keyPlace
	valuePlace
	intPlace
	userPlace
	seqPlace
)

var placeholders = map[string]placeholder{
	"{key}":   keyPlace,
	"{value}": valuePlace,
	"{int}":   intPlace,
	"{user}":  userPlace,
	"{seq}":   seqPlace,
}

// escapedBrace is a brace that begins no placeholder.
const escapedBrace = `\{`

// part is a part of a word: literal bytes, or a placeholder preceded by text.
type part struct {
	place placeholder
	text  []byte
}

// piece is a section of the encoded command: constant bytes, followed, if parts is not empty, by
// one word that is encoded for each request.
type piece struct {
	fixed []byte
	parts []part
	// heads are set if the word is a text and a number, as nearly all keys are: what precedes the
	// digits, constant bytes included, by their count.
	heads [][]byte
}

func newPiece(fixed []byte, parts []part) piece {
	p := piece{fixed: fixed, parts: parts}
	if len(parts) != 1 || parts[0].place == valuePlace || parts[0].place == seqPlace {
		return p
	}
	for count := range maxDigits + 1 {
		head := appendLength(slices.Clone(fixed), len(parts[0].text)+count)
		p.heads = append(p.heads, append(head, parts[0].text...))
	}
	return p
}

// maxDigits is the most digits of a positive int64.
const maxDigits = 19

// Template is an encoded command. It is read-only and safe for concurrent use.
type Template struct {
	pieces []piece
	uses   [seqPlace + 1]bool
}

// Compile encodes a command's words. The placeholders {key}, {value}, {int}, {user} and {seq} may
// be anywhere in a word, also several times; other braces are literal (hash tags), as is one after a
// backslash, which is left out. {key} is replaced by prefix and the key's number.
func Compile(words []string, prefix string) (*Template, error) {
	if len(words) == 0 {
		return nil, errors.New("a command needs at least one word")
	}
	t := &Template{}
	fixed := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		parts := split(w, prefix)
		if len(parts) == 0 || len(parts) == 1 && parts[0].place == literal {
			fixed = appendBulk(fixed, w)
			continue
		}
		for _, p := range parts {
			t.uses[p.place] = true
		}
		t.pieces = append(t.pieces, newPiece(fixed, parts))
		fixed = nil
	}
	if len(fixed) > 0 {
		t.pieces = append(t.pieces, newPiece(fixed, nil))
	}
	return t, nil
}

// split splits a word at its placeholders; each part is a placeholder with the text before it.
func split(word, prefix string) []part {
	var parts []part
	var text strings.Builder
	for len(word) > 0 {
		if rest, ok := strings.CutPrefix(word, escapedBrace); ok {
			text.WriteByte('{')
			word = rest
			continue
		}
		if word[0] == '{' {
			if end := strings.IndexByte(word, '}'); end > 0 {
				if place, ok := placeholders[word[:end+1]]; ok {
					if place == keyPlace {
						text.WriteString(prefix)
					}
					parts = append(parts, part{place: place, text: []byte(text.String())})
					text.Reset()
					word = word[end+1:]
					continue
				}
			}
		}
		text.WriteByte(word[0])
		word = word[1:]
	}
	if text.Len() > 0 {
		parts = append(parts, part{text: []byte(text.String())})
	}
	return parts
}

// UsesKey reports whether the command contains {key}.
func (t *Template) UsesKey() bool {
	return t.uses[keyPlace]
}

// UsesValue reports whether the command contains {value}.
func (t *Template) UsesValue() bool {
	return t.uses[valuePlace]
}

// UsesInt reports whether the command contains {int}.
func (t *Template) UsesInt() bool {
	return t.uses[intPlace]
}

// Append appends the encoded command with the values of a. It allocates only if dst has to grow.
func (t *Template) Append(dst []byte, a *Args) []byte {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.heads != nil {
			if n := p.parts[0].number(a); n >= 0 {
				dst = p.appendNumber(dst, uint64(n))
				continue
			}
		}
		dst = append(dst, p.fixed...)
		if len(p.parts) > 0 {
			dst = appendWord(dst, p.parts, a)
		}
	}
	return dst
}

// appendNumber appends a piece with heads.
func (p *piece) appendNumber(dst []byte, n uint64) []byte {
	count := digits(n)
	dst = append(dst, p.heads[count]...)
	end := len(dst) + count
	dst = append(dst, "0000000000000000000\r\n"[maxDigits-count:]...)
	for n >= 10 {
		end -= 2
		pair := n % 100
		n /= 100
		copy(dst[end:end+2], twoDigits[2*pair:2*pair+2])
	}
	if count%2 == 1 {
		dst[end-1] = byte('0' + n)
	}
	return dst
}

func appendWord(dst []byte, parts []part, a *Args) []byte {
	if len(parts) == 1 && parts[0].place == valuePlace {
		p := &parts[0]
		dst = appendLength(dst, len(p.text)+len(a.Value))
		dst = append(append(dst, p.text...), a.Value...)
		return append(dst, '\r', '\n')
	}
	size := 0
	for i := range parts {
		size += len(parts[i].text) + parts[i].size(a)
	}
	dst = appendLength(dst, size)
	for i := range parts {
		p := &parts[i]
		dst = append(dst, p.text...)
		switch p.place {
		case valuePlace:
			dst = append(dst, a.Value...)
		case seqPlace:
			dst = strconv.AppendUint(dst, a.Seq, 10)
		case keyPlace, intPlace, userPlace:
			dst = strconv.AppendInt(dst, p.number(a), 10)
		}
	}
	return append(dst, '\r', '\n')
}

// appendLength appends the first line of a bulk string.
func appendLength(dst []byte, size int) []byte {
	if size < 100 {
		if size < 10 {
			return append(dst, '$', byte('0'+size), '\r', '\n')
		}
		return append(dst, '$', byte('0'+size/10), byte('0'+size%10), '\r', '\n')
	}
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(size), 10)
	return append(dst, '\r', '\n')
}

// size returns how many bytes the placeholder writes.
func (p *part) size(a *Args) int {
	switch p.place {
	case literal:
		return 0
	case valuePlace:
		return len(a.Value)
	case seqPlace:
		return digits(a.Seq)
	}
	if n := p.number(a); n < 0 {
		return 1 + digits(-uint64(n))
	} else {
		return digits(uint64(n))
	}
}

func (p *part) number(a *Args) int64 {
	switch p.place {
	case keyPlace:
		return a.Key
	case intPlace:
		return a.Int
	}
	return a.User
}

// digits returns the number of decimal digits of n.
func digits(n uint64) int {
	d := 1
	for ; n >= 10000; n /= 10000 {
		d += 4
	}
	switch {
	case n >= 1000:
		return d + 3
	case n >= 100:
		return d + 2
	case n >= 10:
		return d + 1
	}
	return d
}

// twoDigits are the numbers from 00 to 99.
var twoDigits = func() (list [200]byte) {
	for i := range 100 {
		list[2*i], list[2*i+1] = byte('0'+i/10), byte('0'+i%10)
	}
	return list
}()

// AppendCommand appends a command of literal words.
func AppendCommand(dst []byte, words ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(words)), 10)
	dst = append(dst, '\r', '\n')
	for _, w := range words {
		dst = appendBulk(dst, w)
	}
	return dst
}

func appendBulk(dst []byte, w string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(w)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, w...)
	return append(dst, '\r', '\n')
}
