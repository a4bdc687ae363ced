package turns

import (
	"context"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/problem"
)

// ObservePolicy determines whether the policy permits a fault that is not recorded yet.
func (r *Turns) ObservePolicy(ctx context.Context, s *scope.Fault) {
	if s.Seen.Recorded || s.Fault.Status.StartTime != nil || s.Seen.Deleting || s.Seen.Problem != nil {
		return
	}
	limits, err := r.Rules.For(ctx, s.Fault, r.Rules.Recent)
	found, err := problem.From(err)
	switch {
	case err != nil: // whatever does not begin, such as an abort, does not depend on it
		found = &problem.Problem{
			Reason:  v1alpha1.ReasonPolicyInvalid,
			Message: "no fault begins: " + err.Error(),
		}
		fallthrough
	case found != nil && !found.Lasting:
		s.Seen.Withheld = found
	case found != nil:
		s.Seen.Problem = found
	}
	s.Limits = limits
}
