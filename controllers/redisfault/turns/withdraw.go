package turns

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// selectAgain removes the record of a fault that has done nothing, as what it was made from has
// changed: the next reconcile selects targets again, or refuses.
func (r *Turns) selectAgain(ctx context.Context, s *scope.Fault, why string) state.Outcome {
	log.FromContext(ctx).Info("Selecting targets again", "cause", why)
	r.Withdraw(s)
	return state.Outcome{Again: true}
}

// RevertPreparations reverts on all targets what of an injection may exist already, such as a
// taint, and reports whether nothing of it is left.
func RevertPreparations(ctx context.Context, s *scope.Fault) bool {
	clean := true
	for i := range s.Fault.Status.Targets {
		t := &s.Fault.Status.Targets[i]
		progress, err := s.Injector.Revert(ctx, t)
		t.Progress = faultrun.Shorten(progress.Message, faultrun.MaxProgress, len(s.Fault.Status.Targets))
		t.LastError, t.NotSupported = "", false
		if err != nil {
			t.LastError = faultrun.Shorten(
				fmt.Sprintf("revert the preparations of a record that is not used: %v", err), faultrun.MaxError,
				len(s.Fault.Status.Targets))
			s.LogOf(ctx, t).V(1).Info("Retrying to revert the preparations", "cause", err.Error())
		}
		clean = clean && err == nil && progress.Complete()
	}
	return clean
}

// yield removes the record of a fault that cannot begin, so that others can: first it reverts
// what a process that has ended may have prepared. If a target is broken already, the fault has
// begun, and goes on.
func (r *Turns) yield(
	ctx context.Context, s *scope.Fault, why func() *problem.Problem,
) (state.Outcome, bool) {
	if err := r.Reach.Connect(ctx, s); err != nil {
		return state.Outcome{Err: err}, false
	}
	for i := range s.Fault.Status.Targets {
		begun, err := s.Injector.Begun(ctx, &s.Fault.Status.Targets[i])
		if err != nil {
			return state.Outcome{Err: err}, false
		} else if begun {
			return state.Outcome{}, true
		}
	}
	if !RevertPreparations(ctx, s) {
		return state.Outcome{}, false
	}
	return r.leave(ctx, s, why()), false
}

// leave removes the record of a fault that has done nothing.
func (r *Turns) leave(ctx context.Context, s *scope.Fault, shown *problem.Problem) state.Outcome {
	log.FromContext(ctx).Info("Yielding: the fault was recorded, but cannot begin", "reason",
		shown.Reason, "cause", shown.Message)
	r.Withdraw(s)
	return state.Outcome{
		Problem: shown,
		Ended:   shown.Lasting,
		Failed:  shown.Lasting,
	}
}

// Withdraw removes the record of a fault that has injected nothing, and what belongs to it.
func (r *Turns) Withdraw(s *scope.Fault) {
	r.Term.StopObserving(s.Fault)
	r.Term.DropReverter(s.Fault)
	withdraw(s)
}

// withdraw removes the record from the status.
func withdraw(s *scope.Fault) {
	status := &s.Fault.Status
	status.StartTime = nil
	status.Targets = nil
	status.Workloads = nil
	status.Nodes = nil
	status.Warnings = nil
	status.LoadStartTime = nil
	status.BesideSince, status.BesideUIDs = nil, nil
	status.Holding = nil
	status.Plan = nil
	status.LoadTestUID = ""
}

// Holds reports whether other faults have to wait for this one.
func Holds(s *scope.Fault, over bool) *bool {
	if over || !scope.IsRecorded(&s.Fault.Status) || s.Fault.Status.RevertedAt != nil {
		return nil
	}
	return new(true)
}
