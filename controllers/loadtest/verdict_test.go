package loadtest

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/result"
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
		{"a saturated generator", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.LoadGenerator), Evidence: "load pod 0 used 95% of its limit"}}
		}, "LoadGeneratorSaturated"},
		{"another bottleneck", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.Network)}}
		}, ""},
		{"a hole in the record", v1alpha1.ReasonSucceeded, func(s *scope) { s.holes = []string{"7 intervals of load-1 are gone"} }, "IntervalsMissing"},
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
