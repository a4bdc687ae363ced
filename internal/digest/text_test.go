package digest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/result"
)

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		text string
		want string
	}{
		{"short", "short"},
		{strings.Repeat("x", 10), strings.Repeat("x", 10)},
		{strings.Repeat("x", 11), "xxxxxxx..."},
		{strings.Repeat("ä", 10), "äää..."},
		{"a\n\x1b[2J\xff", "a;  [2J?"},
		{errors.Join(errors.New("one"), errors.New("two")).Error(), "one; two"},
		{"a\r\n b\n", "a; b"},
		{"\u202eabc", " abc"},
	} {
		if got := Truncate(tc.text, 10); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestErrorCounts(t *testing.T) {
	got := ErrorCounts([]result.ErrorCount{{Class: "Timeout", Count: 3}, {Class: "Refused", Count: math.MaxUint64}})
	if len(got) != 2 || got[0].Class != "Timeout" || got[0].Count != 3 || got[1].Count != math.MaxInt64 {
		t.Errorf("the counts are %+v", got)
	}
}
