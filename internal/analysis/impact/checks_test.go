package impact

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// What is checked fails exactly if it is a doubt.
func TestChecksAgreeWithDoubts(t *testing.T) {
	for name, tc := range map[string]struct {
		at   time.Duration
		want []string
	}{"a long baseline": {20 * time.Second, nil}, "a short baseline": {5 * time.Second, []string{BaselineTooShort}}} {
		s := recorded.Load{
			Rate:   200,
			Length: 40 * time.Second,
			Down:   []summary.Window{{From: tc.at, To: tc.at + time.Second}},
		}.Record(t)
		s.Finish(0)
		f := Fault{At: tc.at}
		m := Analyze(s, f, Options{})
		var failed []string
		for _, c := range Checks(s, f, Options{}) {
			if !c.Passed() {
				failed = append(failed, c.Reason)
			}
			if doubted := slices.ContainsFunc(m.Doubts, func(d Doubt) bool {
				return d.Reason == c.Reason
			}); doubted == c.Passed() {
				t.Errorf("%s: %+v, doubts %+v", name, c, m.Doubts)
			}
		}
		if !slices.Equal(failed, tc.want) {
			t.Errorf("%s: %v failed, want %v", name, failed, tc.want)
		}
	}
}
