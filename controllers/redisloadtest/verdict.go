package redisloadtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// judge sets the verdict.
func (s *scope) judge(reason string) {
	status := &s.test.Status
	r := s.result
	if r == nil {
		r = &result.Load{}
	}
	r.Doubts = append(s.doubts(reason), r.Doubts...)
	if s.session.Ledger != nil {
		r.Verified(s.session.Ledger)
	} else { // the load pods are released
		r.Verification = digest.VerificationOf(status.Verification, s.seen.StartedAt)
	}
	judgement := verdict.Load(s.test.Spec.Objectives, r)
	status.Doubts = digest.Doubts(r.Doubts)
	status.Verdict, status.Objectives = judgement.Verdict, judgement.Objectives
	state.SetObjectivesMet(&status.Conditions, s.test.Generation, judgement)
}

// doubts returns reasons not to trust the run as a whole, apart from those that its result shows.
func (s *scope) doubts(reason string) []impact.Doubt {
	var doubts []impact.Doubt
	add := func(reason, format string, args ...any) {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if reason == v1alpha1.ReasonAborted {
		add(v1alpha1.ReasonAborted, "the load was aborted")
	}
	if len(s.lost) > 0 {
		add(v1alpha1.ReasonPodsLost, "%d of %d load pods were lost: %s", len(s.lost), s.seen.PodsWanted,
			strings.Join(s.seen.PodsLost, "; "))
	}
	// All pods record on one grid: a late start matters only after the measurement has begun.
	if limit := max(state.MaxSkew, s.measuredFrom()); s.session.Skew > limit {
		add("StartSkew", "the load pods started %s apart (limit %s)", format.Duration(s.session.Skew),
			format.Duration(limit))
	}
	s.run.Read(func(series *merged.Series) { doubts = append(doubts, state.ClockDoubts(series)...) })
	for _, hole := range s.holes {
		add(impact.IntervalsMissing, "%s", hole)
	}
	return doubts
}

// measuredFrom returns the end of ramp-up and warm-up; 0 without a plan.
func (s *scope) measuredFrom() time.Duration {
	if s.plan == nil {
		return 0
	}
	return s.plan.Shape.MeasuredFrom()
}
