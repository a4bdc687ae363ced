// Package turns decides which of several faults acts when they want the same servers, workloads or
// nodes, or would be too wide together, and what the policy of the cluster lets begin.
package turns

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/reach"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// Turns has faults act in turn.
type Turns struct {
	Clock  clock.PassiveClock
	Term   *faultrun.Term
	Claims claims.Reader // what other faults hold
	Rules  rules.Reader  // what decides whether faults may begin
	Reach  *reach.Reach
}

// One fault at a time acts on a server, a workload or a node. A second fault waits before it
// records anything. Two that have passed that check at the same time are both recorded, but not
// injected: before its first injection each reads from the API server, not from a cache, which
// faults are recorded. At least one of them sees the other, as that read comes after its own
// record, and one yields.

// ClashWith is why a fault can never act beside the settings of its load that are in force, and
// those that it names in spec.beside; nil if it can.
func ClashWith(wanted lock.Claim, held []lock.Claim) *problem.Problem {
	for _, other := range held {
		if why := lock.Clash(wanted, other); why != "" {
			return &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Message: why,
				Lasting: true,
			}
		}
	}
	return nil
}

// ObserveTurn determines whether a fault that waits for others still has to. Its status names what
// it waits for now: that ends its wait.
func (r *Turns) ObserveTurn(ctx context.Context, s *scope.Fault) error {
	wanted, waits := lock.Waiting(s.Fault)
	if !waits {
		return nil
	}
	held, waiting, err := r.Claims.Known(ctx, wanted, s.Limits)
	if err != nil {
		return err
	}
	other, on, blocked := lock.Blocker(wanted, held, waiting)
	if blocked {
		s.Seen.Blocked = waitFor(s, wanted, other, on).Message
		return nil
	}
	if s.Seen.Blocked = besideStill(s, held); s.Seen.Blocked != "" {
		return nil
	}
	for _, limit := range s.Limits {
		if why, full := limit.Full(wanted, held, waiting); full {
			s.Seen.OverLimit = waitForLimit(s, wanted, limit, why).Message
			return nil
		}
	}
	return nil
}

// Wanted is what a fault is about to act on.
func (r *Turns) Wanted(
	s *scope.Fault, targets []v1alpha1.FaultTarget, workloads, nodes []string,
) lock.Claim {
	since := metav1.NewMicroTime(r.Clock.Now())
	if w := s.Fault.Status.Waiting; w != nil {
		since = w.Since
	}
	return lock.Wanted(s.Fault, s.Traits, targets, workloads, nodes, since.Time)
}

// Reconsider returns the outcome of a fault that was refused for good, unless another one has acted
// since it was this one's turn: what that has changed may be the reason. Then the fault waits for
// it, or selects its targets again.
func (r *Turns) Reconsider(
	ctx context.Context, s *scope.Fault, wanted lock.Claim, refused state.Outcome,
) state.Outcome {
	if !refused.Ended {
		return refused
	}
	other, on, reverted, err := r.Claims.Contender(ctx, s.Fault, wanted, s.Now)
	switch {
	case err != nil:
		return state.Outcome{Err: err}
	case on != "":
		return state.Outcome{Problem: waitFor(s, wanted, other, on)}
	case reverted:
		return state.Outcome{Again: true}
	}
	return refused
}

// TakeTurn reports whether a fault can act, as far as the cache knows the others. If not, its
// status says what it waits for.
func (r *Turns) TakeTurn(
	ctx context.Context, s *scope.Fault, wanted lock.Claim,
) (problemToShow *problem.Problem, err error) {
	limits, err := r.Rules.For(ctx, s.Fault, r.Rules.Live)
	if err != nil {
		return problem.From(err)
	}
	held, waiting, err := r.Claims.Known(ctx, wanted, limits)
	if err != nil {
		return nil, err
	}
	if clash := ClashWith(wanted, held); clash != nil {
		return clash, nil
	}
	other, on, blocked := lock.Blocker(wanted, held, waiting)
	if blocked {
		return waitFor(s, wanted, other, on), nil
	}
	for _, limit := range limits {
		if limit.Never(wanted) {
			return rules.TooManyNodes(wanted, limit), nil
		}
		if why, full := limit.Full(wanted, held, waiting); full {
			return waitForLimit(s, wanted, limit, why), nil
		}
	}
	return nil, nil
}

// waitFor puts the fault into the queue for what another one acts on.
func waitFor(s *scope.Fault, wanted, other lock.Claim, on string) *problem.Problem {
	queueUp(s, wanted)
	s.Fault.Status.Waiting.For = lock.NameOf(other.Fault, s.Fault.Namespace)
	return &problem.Problem{
		Reason:  v1alpha1.ReasonWaitingForFault,
		Message: lock.Message(wanted, other, on),
	}
}

// waitForLimit puts the fault into the queue for a limit.
func waitForLimit(
	s *scope.Fault, wanted lock.Claim, limit lock.Limit, why string,
) *problem.Problem {
	queueUp(s, wanted)
	s.Fault.Status.Waiting.Limit = limit.Of
	return &problem.Problem{Reason: v1alpha1.ReasonWaitingForPolicy, Message: why}
}

// queueUp keeps the place of a fault that has waited before.
func queueUp(s *scope.Fault, wanted lock.Claim) {
	since := metav1.NewMicroTime(wanted.Since)
	if w := s.Fault.Status.Waiting; w != nil {
		since = w.Since
	}
	s.Fault.Status.Waiting = &v1alpha1.WaitingFault{
		Since:      since,
		Pods:       wanted.Pods,
		Workloads:  wanted.Workloads,
		Whole:      wanted.Whole,
		Nodes:      wanted.Nodes,
		Deployment: wanted.Deployment,
	}
}

// MayAct reports whether a fault that is recorded, and that has injected nothing yet, can begin:
// the policy permits it, and it acts alone on what it acts on.
// If not, the outcome is what to do.
func (r *Turns) MayAct(ctx context.Context, s *scope.Fault) (state.Outcome, bool) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	limits, err := r.Rules.For(ctx, s.Fault, r.Rules.Live)
	if found, err := problem.From(err); err != nil {
		return state.Outcome{Err: err}, false
	} else if found != nil {
		return r.yield(ctx, s, func() *problem.Problem { return found })
	}
	if late, err := r.tooLate(ctx, s.Fault); err != nil {
		return state.Outcome{Err: err}, false
	} else if late != nil {
		return r.yield(ctx, s, func() *problem.Problem { return late })
	}
	own, _ := lock.Held(s.Fault, s.Traits)
	held, known, acted, err := r.Claims.Beside(ctx, s.Before, own,
		claims.ReachesOut(own, limits))
	if err != nil || !known {
		return state.Outcome{Again: err == nil, Err: err}, false
	}
	if clash := ClashWith(own, held); clash != nil {
		return r.yield(ctx, s, func() *problem.Problem { return clash })
	}
	for _, other := range held {
		on := lock.Contested(own, other)
		if on == "" {
			continue
		}
		if !lock.Yields(own, other) {
			return state.Outcome{
				Problem: &problem.Problem{
					Reason:  v1alpha1.ReasonWaitingForFault,
					Message: lock.Message(own, other, on),
				},
			}, false
		}
		// The other one was recorded earlier, or has injected: this one has not passed here before, so
		// whatever is broken is not its work.
		return r.leave(ctx, s, waitFor(s, own, other, on)), false
	}
	for _, limit := range limits {
		fits, yields := limit.Turn(own, held)
		switch {
		case yields:
			return r.yield(ctx, s, func() *problem.Problem {
				return waitForLimit(s, own, limit,
					limit.Beside(own, held))
			})
		case !fits:
			return state.Outcome{
				Problem: &problem.Problem{
					Reason:  v1alpha1.ReasonWaitingForPolicy,
					Message: limit.Beside(own, held),
				},
			}, false
		}
	}
	if acted != "" {
		return r.selectAgain(ctx, s,
			fmt.Sprintf("RedisFault %s has acted on them since they were recorded", acted)), false
	}
	return state.Outcome{}, true
}
