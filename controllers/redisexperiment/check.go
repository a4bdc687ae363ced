package redisexperiment

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/problem"
)

// checksAtOnce is how many dry runs there are at once.
const checksAtOnce = 16

// check has the API server check the load test of every cell, without creating it, and then creates
// dry runs of the settings and faults.
func (r *Reconciler) check(ctx context.Context, s *scope) state.Outcome {
	if !accepted(s.experiment) {
		for i := range s.plan.Variants {
			found, err := r.wouldAccept(ctx, s, i)
			if found != nil || err != nil {
				return state.Outcome{
					Problem: found,
					Err:     err,
					Ended:   found != nil,
					Failed:  true,
				}
			}
		}
	}
	for _, c := range s.toCheck[:min(len(s.toCheck), checksAtOnce-len(s.seen.Checks))] {
		err := r.Client.Create(ctx, c.Fault.DeepCopy())
		switch {
		case apierrors.IsAlreadyExists(err): // the cache may not contain it yet
		case problem.Refuses(err):
			return refused(fmt.Sprintf("cell %s: %s: %s", c.Cell, c.What, problem.Refusal(err)))
		case err != nil:
			return state.Outcome{Err: fmt.Errorf("create RedisFault %s: %w", c.Fault.Name, err)}
		}
	}
	return state.Outcome{Again: len(s.toCheck) == 0}
}

// wouldAccept asks the API server whether it would accept the load test of a cell.
func (r *Reconciler) wouldAccept(
	ctx context.Context, s *scope, variant int,
) (*problem.Problem, error) {
	v := &s.plan.Variants[variant]
	test := children.RunLoadTest(s.experiment, v, experiment.Slot{Number: variant + 1, Round: 1})
	test.Name = fmt.Sprintf("%s-check-%d", s.experiment.Name, variant+1)
	err := r.Client.Create(ctx, test, client.DryRunAll)
	if problem.Refuses(err) {
		return &problem.Problem{
			Reason:  v1alpha1.ReasonRefused,
			Message: fmt.Sprintf("cell %s: the load test: %s", v.Name, problem.Refusal(err)),
			Lasting: true,
		}, nil
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("check the load test of cell %s: %w", v.Name, err)
	}
	return nil, nil
}

func refused(message string) state.Outcome {
	return state.Outcome{
		Problem: &problem.Problem{
			Reason:  v1alpha1.ReasonRefused,
			Message: message,
			Lasting: true,
		},
		Ended:  true,
		Failed: true,
	}
}

// removeChecks deletes the dry runs, once all have passed.
func (r *Reconciler) removeChecks(ctx context.Context, s *scope) error {
	found, err := r.faultsOf(ctx, s, client.MatchingLabels{
		v1alpha1.LabelComponent: children.ComponentCheck,
	})
	if err != nil {
		return err
	}
	for i := range found {
		err := r.Client.Delete(ctx, &found[i])
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisFault %s: %w", found[i].Name, err)
		}
	}
	return nil
}
