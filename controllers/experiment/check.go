package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/problem"
)

// checksAtOnce is how many dry runs there are at once.
const checksAtOnce = 16

// check has the API server check the load test of every cell, without creating it, and then creates dry runs of the settings and faults.
func (r *Reconciler) check(ctx context.Context, s *scope) outcome {
	if !accepted(s.experiment) {
		for i := range s.plan.Variants {
			if found, err := r.wouldAccept(ctx, s, i); found != nil || err != nil {
				return outcome{problem: found, err: err, ended: found != nil, failed: true}
			}
		}
	}
	for _, c := range s.toCheck[:min(len(s.toCheck), checksAtOnce-len(s.seen.Checks))] {
		err := r.Client.Create(ctx, c.Fault.DeepCopy())
		switch {
		case apierrors.IsAlreadyExists(err): // the cache may not contain it yet
		case refuses(err):
			return refused(fmt.Sprintf("cell %s: %s: %s", c.Cell, c.What, reasonOf(err)))
		case err != nil:
			return outcome{err: fmt.Errorf("create RedisFault %s: %w", c.Fault.Name, err)}
		}
	}
	return outcome{checked: true, again: len(s.toCheck) == 0}
}

// wouldAccept asks the API server whether it would accept the load test of a cell.
func (r *Reconciler) wouldAccept(ctx context.Context, s *scope, variant int) (*problem.Problem, error) {
	v := &s.plan.Variants[variant]
	test := children.RunLoadTest(s.experiment, v, experiment.Slot{Number: variant + 1, Round: 1})
	test.Name = fmt.Sprintf("%s-check-%d", s.experiment.Name, variant+1)
	err := r.Client.Create(ctx, test, client.DryRunAll)
	if refuses(err) {
		return &problem.Problem{Reason: v1alpha1.ReasonRefused, Message: fmt.Sprintf("cell %s: the load test: %s", v.Name, reasonOf(err)), Lasting: true}, nil
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("check the load test of cell %s: %w", v.Name, err)
	}
	return nil, nil
}

func refused(message string) outcome {
	return outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonRefused, Message: message, Lasting: true}, ended: true, failed: true}
}

// refuses reports whether the API server does not accept an object, so that trying again does not help.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// reasonOf is the API server's message, without the name of the object, which the user has not chosen, and without the value, which may be a secret.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return fmt.Sprintf("%s: %s", cause.Field, withoutValue(cause.Message))
	}
	return err.Error()
}

// refusedValue is how a cause with a value begins.
var refusedValue = regexp.MustCompile(`^(?:Invalid|Unsupported|Duplicate) value: `)

// withoutValue is the message of a cause without the value at its begin: JSON, or text up to a colon.
func withoutValue(message string) string {
	begin := refusedValue.FindString(message)
	if begin == "" {
		return message
	}
	rest := message[len(begin):]
	value := json.NewDecoder(strings.NewReader(rest))
	if err := value.Decode(new(json.RawMessage)); err == nil {
		rest = rest[value.InputOffset():]
	}
	_, said, _ := strings.Cut(rest, ": ")
	return cmp.Or(said, strings.TrimSuffix(begin, ": "))
}

// removeChecks deletes the dry runs, once all have passed.
func (r *Reconciler) removeChecks(ctx context.Context, s *scope) error {
	found, err := r.faultsOf(ctx, s, client.MatchingLabels{v1alpha1.LabelComponent: children.ComponentCheck})
	if err != nil {
		return err
	}
	for i := range found {
		if err := r.Client.Delete(ctx, &found[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisFault %s: %w", found[i].Name, err)
		}
	}
	return nil
}
