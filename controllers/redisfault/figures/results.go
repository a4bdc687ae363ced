package figures

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

// SetResults sets the figures, and when the fault has settled or ended, what follows from them.
func SetResults(
	s *scope.Fault, o state.Outcome, d lifecycle.Decision[lifecycle.FaultAction], now metav1.MicroTime,
) {
	status := &s.Fault.Status
	if status.InjectedAt != nil && status.SettledTime == nil {
		final := o.Ended || d.Action == lifecycle.FaultSettle
		if SetImpact(s, final); final {
			status.SettledTime = &now
			judgeSettled(s)
		}
	}
	if !o.Ended {
		return
	}
	SetLosses(s)
	status.CompletionTime, status.Waiting = &now, nil
	if !o.Failed && s.Seen.Restored == "" {
		judge(s, d.Reason)
	}
}

// atMostLate is how much longer than asked a fault may stay without a doubt.
const atMostLate = 2 * time.Second

// Overstayed returns by how much longer than asked the fault has stayed on any target; nil if it
// has not. A revert that may take several steps is late by when it began, unless an attempt has
// failed.
func Overstayed(s *scope.Fault, now time.Time) *v1alpha1.Duration {
	status := &s.Fault.Status
	if s.Traits.Lasts == 0 || !s.Seen.InjectedAll && status.RevertingSince == nil {
		return status.Overstayed
	}
	asked, since := s.Seen.ActiveAt.Add(s.Traits.Lasts), status.RevertingSince
	if since != nil && (!s.Seen.InjectedAll || since.Time.Before(asked)) {
		asked = since.Time // it was ended early
	}
	var longest time.Duration
	for i := range status.Targets {
		t := &status.Targets[i]
		switch {
		case t.InjectedAt == nil:
		case since != nil && t.RevertAttempts == 0 && !s.Traits.Separate:
			longest = max(longest, since.Sub(asked))
		case t.RevertedAt != nil:
			longest = max(longest, t.RevertedAt.Sub(asked))
		default:
			longest = max(longest, now.Sub(asked))
		}
	}
	// errors before the last attempt are not counted any more
	if old := status.Overstayed; old != nil {
		longest = max(longest, old.Duration)
	}
	if longest <= atMostLate {
		return nil
	}
	return new(v1alpha1.DurationOf(longest))
}
