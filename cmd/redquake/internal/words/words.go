// Package words splits a line of text into words, as a shell does.
package words

import (
	"fmt"
	"strings"
)

// Split splits at spaces. Words in single or double quotes may contain spaces and be empty; within
// double quotes a backslash escapes the next character.
func Split(text string) ([]string, error) {
	var s splitter
	for _, r := range text {
		switch {
		case s.escaped:
			s.word.WriteRune(r)
			s.escaped = false
		case s.quote != 0:
			s.quoted(r)
		default:
			s.unquoted(r)
		}
	}
	if s.quote != 0 || s.escaped {
		return nil, fmt.Errorf("a quote is not closed")
	}
	s.endWord()
	return s.words, nil
}

// splitter is the state of Split.
type splitter struct {
	words   []string
	word    strings.Builder
	inWord  bool // word has begun, even if it is empty
	quote   rune // the open quote; 0 = none
	escaped bool // the next character has no special meaning
}

func (s *splitter) quoted(r rune) {
	switch {
	case s.quote == '"' && r == '\\':
		s.escaped = true
	case r == s.quote:
		s.quote = 0
	default:
		s.word.WriteRune(r)
	}
}

func (s *splitter) unquoted(r rune) {
	switch r {
	case '"', '\'':
		s.quote, s.inWord = r, true
	case ' ', '\t', '\n':
		s.endWord()
	default:
		s.word.WriteRune(r)
		s.inWord = true
	}
}

func (s *splitter) endWord() {
	if !s.inWord {
		return
	}
	s.words = append(s.words, s.word.String())
	s.word.Reset()
	s.inWord = false
}
