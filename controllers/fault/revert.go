package fault

import (
	"context"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
)

// firstAttempt is how long a reconcile waits for the first attempt to revert, so that most reverts are stored by one write.
const firstAttempt = 250 * time.Millisecond

// revert asks for the revert of every target that is not reverted yet. The reverter does it: a notice of its progress triggers a reconcile.
func (r *Reconciler) revert(ctx context.Context, s *scope) outcome {
	if s.seen.LastLook() {
		_ = r.connect(ctx, s) // what is missing shows in the evidence
		s.confirmBeforeRevert(ctx, r.Clock.Now())
	}
	v := r.reverterOf(ctx, s.fault)
	v.ask()
	waits, cancel := context.WithTimeout(ctx, firstAttempt)
	defer cancel()
	v.awaitAttempt(waits)
	known, _ := v.progress()
	known.into(&s.fault.Status)
	return outcome{again: known.revertedAt != nil}
}

// abandon abandons the revert of the targets where it has failed for too long, and shows the commands to revert them manually.
func (r *Reconciler) abandon(ctx context.Context, s *scope) outcome {
	now := r.Clock.Now()
	_ = r.connect(ctx, s) // only the text of the command depends on it
	v := r.reverterOf(ctx, s.fault)
	v.abandon(func(t *v1alpha1.FaultTarget) bool {
		return slices.ContainsFunc(s.seen.Pending, func(p lifecycle.Pending) bool { return p.Pod == t.Pod && s.seen.Abandons(p, now) })
	}, s.injector.ManualRevertCommand)
	known, _ := v.progress()
	known.into(&s.fault.Status)
	s.seen.RevertFailed = abandonedReverts(s.fault.Status.Targets)
	return outcome{again: true}
}
