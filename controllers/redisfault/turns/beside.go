package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/problem"
)

// Two faults on different servers may be too wide together: one holds a replica, and the other one
// its primary. Then one waits for the other, in the order in which faults that want the same server
// do (see turn.go): each reads from the API server, after its own record, what the others hold.

// CheckGuards asks the guard again just before targets are hit: since the selection roles may have
// changed, copies may have been lost, and other faults may have been recorded. Without a target it
// asks for those that were judged with others, which are hit already: only the namespace counts.
func (r *Turns) CheckGuards(
	ctx context.Context, s *scope.Fault, hit ...*v1alpha1.FaultTarget,
) error {
	var others []guard.Hit
	if len(hit) > 0 {
		var err error
		if others, err = r.Claims.HitsNow(ctx, s.Fault); err != nil {
			return err
		}
	}
	return guard.CheckTogether(ctx, s.Deps.Redis, &s.Fault.Spec, s.Traits, hit,
		s.Fault.Status.Targets, others)
}

// MayPass reports whether a refusal of the guard says that something has changed, or has to pass,
// and the fault itself is well.
func MayPass(err error) bool {
	_, moved := errors.AsType[guard.LostRole](err)
	_, occupied := errors.AsType[*guard.Occupied](err)
	return moved || occupied
}

// OccupiedBy is why a fault has to wait for others that act; nil where it does not.
func OccupiedBy(err error) *guard.Occupied {
	occupied, ok := errors.AsType[*guard.Occupied](err)
	if ok && len(occupied.By) > 0 {
		return occupied
	}
	return nil
}

// StepBack is the outcome of a fault that is recorded, and that the guard has kept from injecting
// anything.
func (r *Turns) StepBack(ctx context.Context, s *scope.Fault, refused error) state.Outcome {
	occupied, ok := errors.AsType[*guard.Occupied](refused)
	switch {
	case !ok:
		return r.selectAgain(ctx, s, "a target has another role now")
	case len(occupied.By) == 0:
		return r.leave(ctx, s, occupied.Problem)
	}
	own, _ := lock.Held(s.Fault, s.Traits)
	held, known, err := r.Claims.Acting(ctx, s.Before, false)
	if err != nil || !known {
		return state.Outcome{Again: err == nil, Err: err}
	}
	for _, other := range held {
		if slices.Contains(occupied.By, other.Fault.Name) && other.Fault.Namespace == s.Fault.Namespace &&
			!lock.Yields(own, other) {
			log.FromContext(ctx).V(1).Info("Waiting until another fault yields, or has begun", "other",
				other.Fault.Name)
			return state.Outcome{Problem: besideMessage(other.Fault.Name, occupied.Problem)}
		}
	}
	return r.leave(ctx, s, WaitBeside(s, own, occupied))
}

// WaitBeside puts the fault into the queue for one that holds other copies.
func WaitBeside(s *scope.Fault, wanted lock.Claim, occupied *guard.Occupied) *problem.Problem {
	queueUp(s, wanted)
	s.Fault.Status.Waiting.For, s.Fault.Status.Waiting.Guard = occupied.By[0], occupied.Guard
	return besideMessage(occupied.By[0], occupied.Problem)
}

func besideMessage(other string, refused *problem.Problem) *problem.Problem {
	return &problem.Problem{
		Reason:  v1alpha1.ReasonWaitingForFault,
		Message: fmt.Sprintf("waiting for RedisFault %s: %s", other, refused.Message),
	}
}

// besideStill is why a fault still waits for one beside which it would be too wide; "" if it does
// not.
func besideStill(s *scope.Fault, held []lock.Claim) string {
	w := s.Fault.Status.Waiting
	if w.Guard == "" || !slices.ContainsFunc(held, func(c lock.Claim) bool {
		return c.Fault == types.NamespacedName{Namespace: s.Fault.Namespace, Name: w.For}
	}) {
		return ""
	}
	c := meta.FindStatusCondition(s.Fault.Status.Conditions, v1alpha1.ConditionComplete)
	if c != nil && c.Reason == v1alpha1.ReasonWaitingForFault {
		return c.Message
	}
	return fmt.Sprintf("waiting for RedisFault %s; spec.allow: [%s] lifts this guard", w.For, w.Guard)
}

// tooLate is why a fault that was recorded cannot act beside those in spec.beside any more, by the
// API server: a cache may not know yet that one is over. nil = all of them act.
func (r *Turns) tooLate(ctx context.Context, f *v1alpha1.RedisFault) (*problem.Problem, error) {
	for i, name := range f.Spec.Beside {
		other := &v1alpha1.RedisFault{}
		err := r.Claims.APIReader.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, other)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read RedisFault %s: %w", name, err)
		}
		since, _ := scope.ActsSince(other, claims.TraitsOf(other))
		uids := f.Status.BesideUIDs
		same := i >= len(uids) || string(other.UID) == uids[i]
		if err != nil || since.IsZero() || !same {
			return &problem.Problem{
				Reason:  v1alpha1.ReasonNotBeside,
				Lasting: true,
				Message: fmt.Sprintf("spec.beside: RedisFault %s does not act any more", name),
			}, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}
