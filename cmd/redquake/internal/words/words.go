// Package words splits a line of text into words, as redis-cli does.
package words

import (
	"errors"
	"strconv"
)

// Split splits at spaces. Within double quotes \n, \r, \t, \b, \a and \xHH are the bytes that they
// are in C, and a backslash before another character is left out; within single quotes only \' is
// an escape. Outside of quotes a backslash is one.
//
// A brace that is escaped in double quotes, as \{ or \x7b, becomes \{, which a command's template
// takes as the brace itself, and not as the begin of a placeholder.
func Split(text string) ([]string, error) {
	var words []string
	for {
		for len(text) > 0 && isSpace(text[0]) {
			text = text[1:]
		}
		if len(text) == 0 {
			return words, nil
		}
		word, rest, err := cutWord(text)
		if err != nil {
			return nil, err
		}
		words, text = append(words, word), rest
	}
}

// cutWord cuts the first word off a text that begins with it.
func cutWord(text string) (word, rest string, err error) {
	var b []byte
	quote := byte(0) // the open one; 0 = none
	for len(text) > 0 {
		c := text[0]
		switch {
		case quote == 0 && isSpace(c):
			return string(b), text, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
			if len(text) > 1 && !isSpace(text[1]) {
				return "", "", errors.New("a closing quote must be followed by a space")
			}
		case quote != 0 && c == '\\' && len(text) > 1:
			var escaped []byte
			escaped, text = unescape(quote, text)
			b = append(b, escaped...)
			continue
		default:
			b = append(b, c)
		}
		text = text[1:]
	}
	if quote != 0 {
		return "", "", errors.New("a quote is not closed")
	}
	return string(b), "", nil
}

// controls are the escapes of control characters in double quotes.
var controls = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}

// unescape cuts an escape, which begins with a backslash, off a text within quotes.
func unescape(quote byte, text string) (escaped []byte, rest string) {
	c := text[1]
	if quote == '\'' {
		if c == '\'' {
			return []byte{c}, text[2:]
		}
		return []byte{'\\'}, text[1:]
	}
	rest = text[2:]
	if control, ok := controls[c]; ok {
		return []byte{control}, rest
	}
	if c == 'x' && len(rest) >= 2 {
		if n, err := strconv.ParseUint(rest[:2], 16, 8); err == nil {
			c, rest = byte(n), rest[2:]
		}
	}
	if c == '{' {
		return []byte(`\{`), rest
	}
	return []byte{c}, rest
}

func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}
