package redisfault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// errDryRun keeps a dry run from injecting, whatever was decided.
var errDryRun = errors.New("spec.dryRun: nothing may be injected")

// rehearse selects the targets of a dry run, checks them, and ends it. Targets, plan and end are
// stored by one write, so that no operator finds a record to act on.
func (r *Reconciler) rehearse(ctx context.Context, s *scope.Fault) state.Outcome {
	var targets []v1alpha1.FaultTarget
	var workloads, warnings []string
	if !s.Traits.External {
		if s.Target == nil {
			return scope.ProblemOf(problem.Invalid("spec.target: the Redis of the fault is not known"))
		}
		var beside []string
		selected, err := r.selectTargets(ctx, s)
		if occupied, ok := errors.AsType[*guard.Occupied](err); ok {
			beside = append(beside, "the fault would wait: "+occupied.Message)
		} else if err != nil {
			return scope.ProblemOf(err)
		}
		targets = selected.Targets
		var omitted []string
		workloads, omitted = turns.WorkloadsOf(selected, s.Traits)
		err = rules.Permitted(ctx, r.APIReader, s.Fault)
		if err != nil {
			return scope.ProblemOf(err)
		}
		waits, err := r.wouldWait(ctx, s, r.turns().Wanted(s, targets, workloads, selected.Nodes))
		if err != nil {
			return scope.ProblemOf(err)
		}
		warnings = slices.Concat(omitted, waits, beside, obstacles(s))
		if err := preflight(ctx, s, targets); err != nil {
			if len(waits) == 0 {
				return scope.ProblemOf(err)
			}
			// for what another one has changed
			warnings = append(warnings,
				fmt.Sprintf("it cannot be checked now whether the fault works, as it would wait: %v", err))
		}
	}
	status := &s.Fault.Status
	warnings = append(warnings, warningsOf(ctx, s, targets)...)
	status.Warnings = fitting(warnings)
	status.Targets = targets
	status.Workloads = workloads
	status.Plan = planOf(s, targets)
	status.StartTime = new(metav1.NewMicroTime(r.Clock.Now()))
	log.FromContext(ctx).Info("Planned, not injected", "faultType", s.Fault.Spec.Action.Type,
		"targets", scope.PodNames(targets))
	return state.Outcome{
		Ended:   true,
		Problem: &problem.Problem{Reason: v1alpha1.ReasonDryRun, Message: rehearsed(status)},
	}
}

// rehearsed summarizes a dry run.
func rehearsed(status *v1alpha1.RedisFaultStatus) string {
	text := "nothing was injected"
	if steps := status.Plan.Steps; len(steps) > 0 {
		text += "; the fault would: " + steps[0].Action
		if n := len(status.Targets) - 1; n > 0 {
			text += fmt.Sprintf(", and the same to %d more", n)
		}
	}
	if n := len(status.Warnings); n > 0 {
		text += fmt.Sprintf(" (%d warnings)", n)
	}
	return text
}

// wouldWait is for what the fault would have to wait now: another one, or a limit of the cluster's
// policy.
func (r *Reconciler) wouldWait(
	ctx context.Context, s *scope.Fault, wanted lock.Claim,
) ([]string, error) {
	limits, err := r.rules().For(ctx, s.Fault, r.rules().Live)
	if err != nil {
		return nil, err
	}
	held, waiting, err := r.claims().Known(ctx, wanted, limits)
	if err != nil {
		return nil, err
	}
	if clash := turns.ClashWith(wanted, held); clash != nil {
		return nil, clash
	}
	other, on, blocked := lock.Blocker(wanted, held, waiting)
	if blocked {
		return []string{"the fault would wait: " + lock.Message(wanted, other, on)}, nil
	}
	for _, limit := range limits {
		if why, full := limit.Full(wanted, held, waiting); full {
			return []string{"the fault would wait: " + why}, nil
		}
	}
	return nil, nil
}

// obstacles are what of its load would keep the fault from being injected now, although its targets
// and the guards permit it.
func obstacles(s *scope.Fault) []string {
	var found []string
	switch s.Seen.Load {
	case lifecycle.LoadMissing:
		if !s.Seen.OwnLoad && !s.Seen.Setting {
			found = append(found, fmt.Sprintf("RedisLoadTest %s does not exist yet", s.Seen.LoadName))
		}
	case lifecycle.LoadEnded, lifecycle.LoadFailed:
		found = append(found, fmt.Sprintf("RedisLoadTest %s is over: the fault would fail",
			s.Seen.LoadName))
	}
	test := measuringTest(s)
	if test != nil && s.Traits.NewPod && losesReplacements(test) {
		found = append(found,
			fmt.Sprintf(
				"RedisLoadTest %s has no target.service: the fault would fail, unless Redis turns out to be a cluster",
				test.Name))
	}
	return found
}

// measuringTest is the load test that measures the fault, also where a dry run does not create it;
// nil if there is none.
func measuringTest(s *scope.Fault) *v1alpha1.RedisLoadTest {
	if s.Test == nil && s.Seen.OwnLoad && s.Fault.Spec.Target != nil {
		return children.ProbeLoadTest(s.Fault)
	}
	return s.Test
}

// neverStarted reports whether the topology of a load's Redis may still turn out to be any: the
// load has not found it, and does not name it.
func neverStarted(test *v1alpha1.RedisLoadTest) bool {
	t := test.Spec.Target.Topology
	return test.Status.Target == nil && (t == "" || t == v1alpha1.TopologyAuto)
}
