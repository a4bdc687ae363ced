package figures

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// StoreResult stores the result of the fault, of which the status is a digest, beside the record of
// its load: when the fault has settled, and completed when it has ended, which may be after a
// restart of the operator. It comes before the status that says so: a process that dies in between
// does it again.
func StoreResult(ctx context.Context, s *scope.Fault, c client.Client, o state.Outcome) error {
	settled := s.Measured != nil && s.Before.Status.SettledTime == nil &&
		s.Fault.Status.SettledTime != nil
	if s.Test == nil || s.Test.Status.StartTime == nil || s.Fault.Status.InjectedAt == nil ||
		s.Seen.Setting || !settled && !o.Ended {
		return nil
	}
	return state.StoreResult(ctx, c, s.Test, func(stored *corev1.ConfigMap) error {
		kept := stored.BinaryData[children.ResultsFaultsKey]
		f := s.Measured
		if !settled {
			var err error
			if f, err = settledResult(s, kept); f == nil {
				return err
			}
		}
		if o.Ended {
			conclude(s, f)
		}
		packed, err := document.KeepFault(kept, f, children.MaxResultsFaults)
		if errors.Is(err, document.ErrNoRoom) {
			packed, err = document.KeepFault(kept, document.ShortFault(f), children.MaxResultsFaults)
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
func settledResult(s *scope.Fault, kept []byte) (*result.Fault, error) {
	all, err := document.KeptFaults(kept)
	if err != nil {
		return nil, err
	}
	f := result.FaultWith(all, string(s.Fault.UID), s.Fault.Name)
	if f == nil && s.Fault.Status.Impact != nil {
		f = digest.FaultOf(s.Fault, s.Test.Status.StartTime.Time)
	}
	return f, nil
}

// conclude completes the result of a fault that has ended.
func conclude(s *scope.Fault, f *result.Fault) {
	var j verdict.Judgement
	if s.Judgement != nil {
		j = *s.Judgement
	}
	if i := s.Fault.Status.Impact; i != nil {
		for _, d := range i.Doubts { // it may have been ended early since it settled
			f.Doubt(impact.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	f.Conclude(s.Losses, judgedLosses(s), string(j.Verdict),
		j.Message)
}
