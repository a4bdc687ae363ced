package figures

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// Judge sets the verdict.
func Judge(s *scope.Test, reason string) {
	status := &s.Test.Status
	r := s.Result
	if r == nil {
		r = &result.Load{}
	}
	r.Doubts = append(doubts(s, reason), r.Doubts...)
	if s.Session.Ledger != nil {
		r.Verified(s.Session.Ledger)
	} else { // the load pods are released
		r.Verification = digest.VerificationOf(status.Verification, s.Seen.StartedAt)
	}
	if s.Session.Guarantees != nil {
		r.Guaranteed(s.Session.Guarantees)
	} else {
		r.Guarantees = digest.GuaranteesOf(status.Guarantees, s.Seen.StartedAt)
	}
	judgement := verdict.Load(s.Test.Spec.Objectives, r)
	status.Doubts = digest.Doubts(r.Doubts)
	status.Verdict, status.Objectives = judgement.Verdict, judgement.Objectives
	state.SetObjectivesMet(&status.Conditions, s.Test.Generation, judgement)
}

// doubts returns reasons not to trust the run as a whole, apart from those that its result shows.
func doubts(s *scope.Test, reason string) []impact.Doubt {
	var doubts []impact.Doubt
	add := func(reason, format string, args ...any) {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if reason == v1alpha1.ReasonAborted {
		add(v1alpha1.ReasonAborted, "the load was aborted")
	}
	if len(s.Lost) > 0 {
		add(v1alpha1.ReasonPodsLost, "%d of %d load pods were lost: %s", len(s.Lost), s.Seen.PodsWanted,
			strings.Join(s.Seen.PodsLost, "; "))
	}
	// All pods record on one grid: a late start matters only after the measurement has begun.
	limit := max(state.MaxSkew, s.MeasuredFrom())
	if s.Session.Skew > limit {
		add("StartSkew", "the load pods started %s apart (limit %s)", format.Duration(s.Session.Skew),
			format.Duration(limit))
	}
	s.Run.Read(func(series *merged.Series) { doubts = append(doubts, state.ClockDoubts(series)...) })
	for _, hole := range s.Holes {
		add(impact.IntervalsMissing, "%s", hole)
	}
	return doubts
}
