package words

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The rules of redis-cli, which TestEscapesAreThoseOfRedisCLI compares with redis-cli itself.
func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                  nil,
		"  SET  a\tb\n":                     {"SET", "a", "b"},
		`SET "a b" ''`:                      {"SET", "a b", ""},
		`"\n\r\t\b\a"`:                      {"\n\r\t\b\a"},
		`"\\ \" \q"`:                        {`\ " q`},
		`"\x00\xff\x4a"`:                    {"\x00\xffJ"},
		`"\xzz \x4"`:                        {"xzz x4"},
		`'\n \\ \' "'`:                      {`\n \\ ' "`},
		`a\nb \{key} \`:                     {`a\nb`, `\{key}`, `\`},
		`k"ey 1" k'ey 2'`:                   {"key 1", "key 2"},
		`"\{key}" "\x7bkey}" "{key}"`:       {`\{key}`, `\{key}`, "{key}"},
		`EVAL "return redis.call('GET',1)"`: {"EVAL", "return redis.call('GET',1)"},
		"SET a \"ü\\x20\" \v x":             {"SET", "a", "ü ", "x"},
	} {
		got, err := Split(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		`"a`:     "a quote is not closed",
		`'a`:     "a quote is not closed",
		`"a\"`:   "a quote is not closed",
		`"a\`:    "a quote is not closed",
		`"a"b`:   "a closing quote must be followed by a space",
		`'a'"b"`: "a closing quote must be followed by a space",
	} {
		if got, err := Split(text); err == nil || err.Error() != want {
			t.Errorf("%q: %q, %v, want: %s", text, got, err, want)
		}
	}
}
