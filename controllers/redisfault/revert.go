package redisfault

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
)

// firstAttempt is how long a reconcile waits for the first attempt to revert, so that most reverts
// are stored by one write.
const firstAttempt = 250 * time.Millisecond

// revert asks for the revert of every target that is not reverted yet. The reverter does it: a
// notice of its progress triggers a reconcile.
func (r *Reconciler) revert(ctx context.Context, s *scope.Fault) state.Outcome {
	if s.Seen.LastLook() {
		_ = r.reach().Connect(ctx, s) // what is missing shows in the evidence
		confirmBeforeRevert(ctx, s, r.Clock.Now())
	}
	v := r.reach().ReverterOf(ctx, s.Fault)
	v.Ask()
	waits, cancel := context.WithTimeout(ctx, firstAttempt)
	defer cancel()
	v.AwaitAttempt(waits)
	known, _ := v.Progress()
	known.Into(&s.Fault.Status)
	return state.Outcome{Again: known.Reverted()}
}

// abandon abandons the revert of the targets where it has failed for too long, and shows the
// commands to revert them manually.
func (r *Reconciler) abandon(ctx context.Context, s *scope.Fault) state.Outcome {
	now := r.Clock.Now()
	_ = r.reach().Connect(ctx, s) // only the text of the command depends on it
	v := r.reach().ReverterOf(ctx, s.Fault)
	abandons := func(t *v1alpha1.FaultTarget) bool {
		return slices.ContainsFunc(s.Seen.Pending, func(p lifecycle.Pending) bool {
			return p.Pod == t.Pod && s.Seen.Abandons(p, now)
		})
	}
	v.Exclusively(func() { leave(ctx, s, abandons) })
	v.Abandon(abandons, s.Injector.ManualRevertCommand)
	known, _ := v.Progress()
	known.Into(&s.Fault.Status)
	s.Seen.RevertFailed = scope.AbandonedReverts(s.Fault.Status.Targets)
	return state.Outcome{Again: true}
}

// leave hands what is abandoned over to the cluster, as far as that is possible.
func leave(ctx context.Context, s *scope.Fault, abandons func(*v1alpha1.FaultTarget) bool) {
	leaver, ok := s.Injector.(contract.Leaver)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	for i := range s.Fault.Status.Targets {
		t := &s.Fault.Status.Targets[i]
		if !faultrun.IsOpen(t) || !abandons(t) {
			continue
		}
		if err := leaver.Leave(ctx, t); err != nil {
			log.FromContext(ctx).Error(err, "hand an abandoned revert over to the cluster", "target", t.Pod)
		}
	}
}
