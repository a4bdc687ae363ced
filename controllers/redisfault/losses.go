package redisfault

import (
	"math"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// observeLosses attributes losses to the fault, once its load test has read the acknowledged writes
// back, which may be long after the recovery. All are the faults of the namespace: a loss is
// attributed to the one in whose time the writes were lost, and to no setting.
func (s *scope) observeLosses(all []v1alpha1.RedisFault) {
	if s.fault.Status.InjectedAt == nil || s.test == nil || s.test.Spec.Verify == nil ||
		!s.test.Spec.Verify.AcknowledgedWrites {
		return
	}
	v := s.test.Status.Verification
	if v == nil {
		s.seen.LossesPending = !state.IsFinished(s.test.Status.Conditions)
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
		if !all[i].Spec.Setting && status.LoadTest == s.test.Name && status.InjectedAt != nil &&
			status.LoadStartTime.Equal(s.test.Status.StartTime) {
			acted[i] = actedOn(status, s.test.Status.StartTime.Time)
		}
		if all[i].UID == s.fault.UID {
			own = i
		}
	}
	var losses []record.Loss
	for _, l := range v.Losses {
		losses = append(losses, record.Loss{
			First:  int64(l.First.Duration()),
			Last:   int64(l.Last.Duration()),
			Count:  uint64(l.Count),
			Errors: uint64(l.Errors),
			After:  int64(l.After.Duration()),
			Until:  int64(l.Until.Duration()),
		})
	}
	s.losses = result.LossesOf(own, acted, losses, *lost)
}

// actedOn is when a fault acted, counted from the start of its load: from its injection until it
// had settled.
func actedOn(status *v1alpha1.RedisFaultStatus, start time.Time) summary.Window {
	w := summary.Window{From: state.InjectedAfter(status, start), To: math.MaxInt64}
	if over := settledAt(status); over != nil {
		w.To = over.Sub(start)
	}
	return w
}

// setLosses sets the losses in the status, if they are known.
func (s *scope) setLosses() {
	status := &s.fault.Status
	if s.losses == nil || status.Impact == nil || status.InjectedAt == nil {
		return
	}
	digest.Lost(status.Impact, s.losses.Since(state.InjectedAfter(status, status.LoadStartTime.Time)))
}
