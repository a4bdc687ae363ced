package loadtest

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
)

func TestDoubtsOfARun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason string
		change func(*scope)
		want   string
	}{
		{"a good run", v1alpha1.ReasonSucceeded, func(*scope) {}, ""},
		{"aborted", v1alpha1.ReasonAborted, func(*scope) {}, v1alpha1.ReasonAborted},
		{"a lost pod", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.lost, s.seen.PodsLost = map[int]string{1: "OOMKilled"}, []string{"index 1: OOMKilled"}
		}, v1alpha1.ReasonPodsLost},
		{"starts at the limit", v1alpha1.ReasonSucceeded, func(s *scope) { s.session.Skew = state.MaxSkew }, ""},
		{"starts apart", v1alpha1.ReasonSucceeded, func(s *scope) { s.session.Skew = state.MaxSkew + 1 }, "StartSkew"},
		{"a hole in the record", v1alpha1.ReasonSucceeded, func(s *scope) { s.holes = []record.Hole{{Pod: 1, From: time.Second, To: 2 * time.Second}} }, "IntervalsMissing"},
	} {
		s := &scope{seen: lifecycle.LoadTest{PodsWanted: 2}}
		tc.change(s)
		var reasons []string
		for _, d := range s.doubts(tc.reason) {
			reasons = append(reasons, d.Reason)
			if d.Message == "" {
				t.Errorf("%s: no message", tc.name)
			}
		}
		if got := strings.Join(reasons, " "); got != tc.want {
			t.Errorf("%s: doubts %q, want %q", tc.name, got, tc.want)
		}
	}
}
