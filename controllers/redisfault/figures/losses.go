package figures

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// ObserveLosses attributes losses to the fault, once its load test has read the acknowledged writes
// back, which may be long after the recovery. All are the faults of the namespace: a loss is
// attributed to the one in whose time the writes were lost, and to no setting.
func ObserveLosses(s *scope.Fault, all []v1alpha1.RedisFault) {
	if s.Fault.Status.InjectedAt == nil || s.Test == nil || s.Test.Spec.Verify == nil ||
		!s.Test.Spec.Verify.AcknowledgedWrites {
		return
	}
	v := s.Test.Status.Verification
	if v == nil {
		s.Seen.LossesPending = !state.IsFinished(s.Test.Status.Conditions)
		return
	}
	lost := digest.LostWrites(v)
	if lost == nil { // the ledger could not be read: the losses are unknown
		return
	}
	own, acted := -1, make([]summary.Window, len(all))
	for i := range all {
		status := &all[i].Status
		acted[i] = summary.Window{From: -1}
		if !all[i].Spec.Setting && status.LoadTest == s.Test.Name && status.InjectedAt != nil &&
			status.LoadStartTime.Equal(s.Test.Status.StartTime) {
			acted[i] = scope.ActedOn(status, s.Test.Status.StartTime.Time)
		}
		if all[i].UID == s.Fault.UID {
			own = i
		}
	}
	var losses []record.Loss
	for _, l := range v.Losses {
		losses = append(losses, record.Loss{
			First:  int64(l.First.Duration),
			Last:   int64(l.Last.Duration),
			Count:  uint64(l.Count),
			Errors: uint64(l.Errors),
			After:  int64(l.After.Duration),
			Until:  int64(l.Until.Duration),
		})
	}
	s.Losses = result.LossesOf(own, acted, losses, *lost)
}

// SetLosses sets the losses in the status, if they are known.
func SetLosses(s *scope.Fault) {
	status := &s.Fault.Status
	if s.Losses == nil || status.Impact == nil || status.InjectedAt == nil {
		return
	}
	digest.Lost(status.Impact, s.Losses.Since(state.InjectedAfter(status, status.LoadStartTime.Time)))
}
