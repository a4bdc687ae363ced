package redisfault

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// A setting is what a load runs with. It is injected before the load, faults on the same load act
// beside it, and it is reverted after the load, and after them.
// When the load has ended, that is stored first, as heldUntil; then it is read from the API server
// which other faults on the load are recorded. A fault that is recorded later finds heldUntil
// before its first injection, and yields; one that was recorded earlier is found.

// silencing is why a fault is no setting: no load could run with it.
func silencing(f *v1alpha1.RedisFault) *problem.Problem {
	return &problem.Problem{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Lasting: true,
		Message: fmt.Sprintf(
			"spec.setting: this %s would silence Redis, and a setting leaves it serving: set a shorter "+
				"delay (below 1s), or a smaller loss (at most 50%%)", f.Spec.Action.Type),
	}
}

// observeClosing determines what keeps a setting from its revert whose load has ended.
func (r *Reconciler) observeClosing(ctx context.Context, s *scope.Fault) error {
	since := s.Fault.Status.HeldUntil
	if since == nil || s.Seen.Reverting || s.Seen.RevertedAll {
		return nil
	}
	s.Seen.ClosingSince = since.Time
	held := meta.FindStatusCondition(s.Fault.Status.Conditions, v1alpha1.ConditionHeld)
	s.Seen.Unseen = held == nil || held.Status == metav1.ConditionUnknown
	later, err := r.laterOnLoad(ctx, s.Fault)
	s.Seen.Later = later
	return err
}

// laterOnLoad is a fault that was recorded on the load of a setting after its injection, and that
// is not reverted, as the API server has it; "" = there is none.
func (r *Reconciler) laterOnLoad(
	ctx context.Context, setting *v1alpha1.RedisFault,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	later := ""
	var page v1alpha1.RedisFaultList
	err := paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			same := f.Spec.LoadTestRef != nil && f.Spec.LoadTestRef.Name == setting.Spec.LoadTestRef.Name
			if same && f.UID != setting.UID && f.Status.StartTime != nil &&
				f.Status.StartTime.After(setting.Status.InjectedAt.Time) {
				later = f.Name
				return false
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(setting.Namespace), client.MatchingFields{claims.Holding: "true"})
	if err != nil {
		return "", fmt.Errorf("list the faults that act: %w", err)
	}
	return later, nil
}

// closeSetting looks at a setting once its load has ended, or it is aborted, and stores that this has
// happened. What it sees then decides the verdict.
func (r *Reconciler) closeSetting(ctx context.Context, s *scope.Fault) state.Outcome {
	now := r.Clock.Now()
	first := s.Fault.Status.HeldUntil == nil
	if !first && !s.Seen.Unseen {
		return state.Outcome{}
	}
	err := r.reach().Connect(ctx, s)
	if first {
		s.Fault.Status.HeldUntil = new(metav1.NewMicroTime(now))
		log.FromContext(ctx).Info("The load of a setting has ended", "faultType",
			s.Fault.Spec.Action.Type, "loadTest", s.Seen.LoadName)
	}
	confirm(ctx, s, now)
	r.recordSightings(ctx, s)
	return state.Outcome{Err: err}
}
