package state

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/result"
)

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		text string
		want string
	}{{"short", "short"}, {strings.Repeat("x", 10), strings.Repeat("x", 10)}, {strings.Repeat("x", 11), "xxxxxxx..."}, {strings.Repeat("ä", 10), "äää..."}} {
		if got := Truncate(tc.text, 10); got != tc.want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestTTL(t *testing.T) {
	if TTL(nil) != nil {
		t.Error("a TTL without the field")
	}
	if got := TTL(new(int32(90))); *got != 90*time.Second {
		t.Errorf("90 seconds are %s", got)
	}
}

func TestErrorCounts(t *testing.T) {
	got := ErrorCounts([]result.ErrorCount{{Class: "Timeout", Count: 3}, {Class: "Refused", Count: math.MaxUint64}})
	if len(got) != 2 || got[0].Class != "Timeout" || got[0].Count != 3 || got[1].Count != math.MaxInt64 {
		t.Errorf("the counts are %+v", got)
	}
}

func TestClockDoubts(t *testing.T) {
	for shift, doubts := range map[time.Duration]int{0: 0, MaxSkew: 0, -MaxSkew: 0, MaxSkew + 1: 1, -MaxSkew - 1: 1} {
		if got := ClockDoubts(shift); len(got) != doubts || doubts > 0 && got[0].Reason != "ClockShift" {
			t.Errorf("%s: %+v", shift, got)
		}
	}
}
