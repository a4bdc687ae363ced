package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Placeholder is what a request replaces by another value each time.
type Placeholder struct {
	Text    string // with its braces
	Meaning string
}

// Placeholders are those of a command's words.
var Placeholders = []Placeholder{
	{"{key}", "the prefix and the number of a key of the keyspace; the same twice in one command"},
	{"{value}", "random bytes"},
	{"{int}", "a random number from 0 to one less than the keys"},
	{"{user}", "the virtual user's number; of an open loop, that of the event loop"},
	{"{seq}", "a number that no other request of the run has"},
}

// foreign are the placeholders of other tools, and what stands for them.
var foreign = []struct{ text, tool, instead string }{
	{"__rand_int__", "redis-benchmark", "{int}"},
	{"__rand_1st__", "valkey-benchmark", "{int}"},
	{"__rand_2nd__", "valkey-benchmark", "{int}"},
	{"__rand_3rd__", "valkey-benchmark", "{int}"},
	{"__rand_4th__", "valkey-benchmark", "{int}"},
	{"__rand_5th__", "valkey-benchmark", "{int}"},
	{"__rand_6th__", "valkey-benchmark", "{int}"},
	{"__rand_7th__", "valkey-benchmark", "{int}"},
	{"__rand_8th__", "valkey-benchmark", "{int}"},
	{"__rand_9th__", "valkey-benchmark", "{int}"},
	{"__key__", "memtier_benchmark", "{key}"},
	{"__data__", "memtier_benchmark", "{value}"},
	{"__rand_field__", "valkey-benchmark", "{int}"},
}

// inBraces is what looks like a placeholder, a word in braces, and the backslash by which it is none.
var inBraces = regexp.MustCompile(`\\?\{[A-Za-z_][A-Za-z0-9_-]*\}`)

// placeholderProblem returns what in a text looks like a placeholder and is none of those that are
// known; "" = nothing. Such a text would be one hot key instead of many keys.
func placeholderProblem(text string, known []Placeholder) string {
	for _, f := range foreign {
		if strings.Contains(text, f.text) {
			return fmt.Sprintf("%s is a placeholder of %s: write %s", f.text, f.tool, f.instead)
		}
	}
	for _, found := range inBraces.FindAllString(text, -1) {
		is := func(p Placeholder) bool { return p.Text == found }
		if found[0] != '\\' && !slices.ContainsFunc(known, is) {
			return fmt.Sprintf(`%s is none of the placeholders %s: write \%s for the text itself`, found,
				namesOf(known), found)
		}
	}
	return ""
}

func namesOf(known []Placeholder) string {
	var names []string
	for _, p := range known {
		names = append(names, p.Text)
	}
	return strings.Join(names, " ")
}
