package redisfault

import (
	"context"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/problem"
)

// rules reads what decides whether faults may begin.
func (r *Reconciler) rules() rules.Reader {
	return rules.Reader{
		APIReader:         r.APIReader,
		Clock:             r.Clock,
		OperatorNamespace: r.OperatorNamespace,
		Supported:         r.Supported,
		Prometheus:        r.Prometheus,
		Namespaces:        r.namespaces(),
		Copy:              &r.policy,
	}
}

// observePolicy determines whether the policy permits a fault that is not recorded yet.
func (r *Reconciler) observePolicy(ctx context.Context, s *scope) {
	if s.seen.Recorded || s.fault.Status.StartTime != nil || s.seen.Deleting || s.seen.Problem != nil {
		return
	}
	limits, err := r.rules().For(ctx, s.fault, r.rules().Recent)
	found, err := problem.From(err)
	switch {
	case err != nil: // whatever does not begin, such as an abort, does not depend on it
		found = &problem.Problem{
			Reason:  v1alpha1.ReasonPolicyInvalid,
			Message: "no fault begins: " + err.Error(),
		}
		fallthrough
	case found != nil && !found.Lasting:
		s.seen.Withheld = found
	case found != nil:
		s.seen.Problem = found
	}
	s.limits = limits
}
