package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// parseCommands parses the values of --command: a Redis command, optionally with a weight, as "9:GET {key}".
// Operations are named after the command's first word; a second GET is get-2.
func parseCommands(texts []string) ([]v1alpha1.WorkloadCommand, error) {
	var commands []v1alpha1.WorkloadCommand
	used := map[string]int{}
	for _, text := range texts {
		weight, rest, err := cutWeight(text)
		if err != nil {
			return nil, fmt.Errorf("--command %q: %w", text, err)
		}
		words, err := splitWords(rest)
		if err != nil {
			return nil, fmt.Errorf("--command %q: %w", text, err)
		}
		if len(words) == 0 {
			return nil, fmt.Errorf("--command %q: contains no command", text)
		}
		name := operationName(words[0])
		used[name]++
		if n := used[name]; n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		commands = append(commands, v1alpha1.WorkloadCommand{Name: name, Weight: weight, Command: words})
	}
	return commands, nil
}

// cutWeight cuts the weight "9:" off "9:GET {key}"; without one the weight is 1.
func cutWeight(text string) (int32, string, error) {
	number, rest, found := strings.Cut(text, ":")
	if !found || strings.ContainsAny(number, " \t\n'\"") {
		return 1, text, nil // the colon belongs to the command
	}
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return 0, "", fmt.Errorf("the weight %s must be a whole number", number)
	}
	weight, err := strconv.ParseInt(number, 10, 32)
	if err != nil || weight < 1 {
		return 0, "", fmt.Errorf("the weight %s must be between 1 and 1000000", number)
	}
	return int32(weight), rest, nil
}

// operationName converts a command's name to a valid name of an operation: lower case, with dashes for other characters.
func operationName(word string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(word))
	if name = strings.Trim(name, "-._"); name == "" {
		return "command"
	}
	return name
}

// splitWords splits at spaces. Words in single or double quotes may contain spaces and be empty; within double quotes a backslash
// escapes the next character.
func splitWords(text string) ([]string, error) {
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

// splitter is the state of splitWords.
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
