package redisfault

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/result"
)

// storeResult stores the result of the fault, of which the status is a digest, beside the record of
// its load: when the fault has settled, and completed when it has ended, which may be after a
// restart of the operator. It comes before the status that says so: a process that dies in between
// does it again.
func (r *Reconciler) storeResult(ctx context.Context, s *scope, o outcome) error {
	settled := s.measured != nil && s.before.Status.SettledTime == nil &&
		s.fault.Status.SettledTime != nil
	if s.test == nil || s.test.Status.StartTime == nil || s.fault.Status.InjectedAt == nil ||
		s.seen.Setting || !settled && !o.ended {
		return nil
	}
	return state.StoreResult(ctx, r.Client, s.test, func(stored *corev1.ConfigMap) error {
		kept := stored.BinaryData[children.ResultsFaultsKey]
		f := s.measured
		if !settled {
			var err error
			if f, err = s.settledResult(kept); f == nil {
				return err
			}
		}
		if o.ended {
			s.conclude(f)
		}
		packed, err := result.KeepFault(kept, f, children.MaxResultsFaults)
		if errors.Is(err, result.ErrNoRoom) {
			packed, err = result.KeepFault(kept, f.Short(), children.MaxResultsFaults)
		}
		if err != nil {
			return err
		}
		if stored.BinaryData == nil {
			stored.BinaryData = map[string][]byte{}
		}
		stored.BinaryData[children.ResultsFaultsKey] = packed
		return nil
	})
}

// settledResult is the result of the fault that was kept when it had settled, or that of its
// status, if there was no record yet then. nil = it has no figures.
func (s *scope) settledResult(kept []byte) (*result.Fault, error) {
	all, err := result.KeptFaults(kept)
	if err != nil {
		return nil, err
	}
	f := result.FaultWith(all, string(s.fault.UID), s.fault.Name)
	if f == nil && s.fault.Status.Impact != nil {
		f = digest.FaultOf(s.fault, s.test.Status.StartTime.Time)
	}
	return f, nil
}

// conclude completes the result of a fault that has ended.
func (s *scope) conclude(f *result.Fault) {
	var j verdict.Judgement
	if s.judgement != nil {
		j = *s.judgement
	}
	f.Conclude(s.losses, verdict.Losses(s.fault.Spec.Objectives, s.losses), string(j.Verdict),
		j.Message)
}
