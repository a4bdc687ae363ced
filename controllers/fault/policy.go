package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/problem"
)

// The cluster's policy decides which faults may begin. A fault is judged by it when it is first seen, and while it waits, from a copy that may be some seconds
// old; before it records its targets, and once more before its first injection, as the API server has it. A fault that has begun is not judged any more.

// policyCopy is the policy that was read last.
type policyCopy struct {
	mu    sync.Mutex
	at    time.Time // when it was read; zero = never
	known *policy.Policy
	err   error
}

// policyAge is how old a copy may be.
const policyAge = 5 * time.Second

// recentPolicy is the policy as it was some seconds ago at most.
func (r *Reconciler) recentPolicy(ctx context.Context) (*policy.Policy, error) {
	r.policy.mu.Lock()
	defer r.policy.mu.Unlock()
	if now := r.Clock.Now(); r.policy.at.IsZero() || now.Sub(r.policy.at) >= policyAge || now.Before(r.policy.at) {
		ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
		defer cancel()
		r.policy.known, r.policy.err = r.livePolicy(ctx)
		r.policy.at = r.Clock.Now()
	}
	return r.policy.known, r.policy.err
}

// livePolicy is the policy as the API server has it. Its error is a Problem if it has to be corrected.
func (r *Reconciler) livePolicy(ctx context.Context) (*policy.Policy, error) {
	if r.OperatorNamespace == "" {
		return policy.Default(), nil
	}
	var stored corev1.ConfigMap
	key := client.ObjectKey{Namespace: r.OperatorNamespace, Name: policy.ConfigMap}
	switch err := r.APIReader.Get(ctx, key, &stored); {
	case apierrors.IsNotFound(err):
		return policy.Default(), nil
	case apierrors.IsForbidden(err):
		return nil, invalidPolicy("the operator may not read ConfigMap %s: %v", key, err)
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	text, has := stored.Data[policy.Key]
	if !has {
		return nil, invalidPolicy("ConfigMap %s has no key %s", key, policy.Key)
	}
	found, err := policy.Parse(text, fault.Types())
	if err != nil {
		return nil, invalidPolicy("%s of ConfigMap %s: %v", policy.Key, key, err)
	}
	return found, nil
}

func invalidPolicy(format string, words ...any) error {
	return &problem.Problem{Reason: v1alpha1.ReasonPolicyInvalid, Message: "no fault begins: " + fmt.Sprintf(format, words...)}
}

func forbidden(format string, words ...any) *problem.Problem {
	return &problem.Problem{Reason: v1alpha1.ReasonForbiddenByPolicy, Message: fmt.Sprintf(format, words...), Lasting: true}
}

// rulesFor are the limits for a fault. Its error is a Problem if the fault is forbidden, or the policy cannot be applied.
func (r *Reconciler) rulesFor(ctx context.Context, s *scope, read func(context.Context) (*policy.Policy, error)) ([]lock.Limit, error) {
	if kind := s.fault.Spec.Action.Type; r.Supported != nil && !slices.Contains(r.Supported, kind) {
		return nil, forbidden("spec.action.type: %s is switched off in this installation, by the flag --faults of the manager", kind)
	}
	if err := r.mayAsk(s.fault.Spec.StopIf); err != nil {
		return nil, err
	}
	current, err := read(ctx)
	if err != nil {
		return nil, err
	}
	var labels map[string]string
	if current.NeedsLabels() {
		namespace, err := r.namespaceOf(ctx, s.fault.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read namespace %s: %w", s.fault.Namespace, err)
		}
		labels = namespace.Labels
	}
	if why := current.Refusal(s.fault.Namespace, labels, &s.fault.Spec); why != "" {
		return nil, forbidden("%s of ConfigMap %s/%s", why, r.OperatorNamespace, policy.ConfigMap)
	}
	var limits []lock.Limit
	for _, limit := range current.Limits(s.fault.Namespace, labels) {
		limits = append(limits, lock.Limit(limit))
	}
	return limits, nil
}

// mayAsk refuses a fault with a stop condition that the manager may not evaluate: it would run without its guard.
func (r *Reconciler) mayAsk(conditions *v1alpha1.StopConditions) error {
	if conditions == nil {
		return nil
	}
	for i := range conditions.Queries {
		q := &conditions.Queries[i]
		if err := r.Prometheus.Check(q.Prometheus.URL); err != nil {
			return forbidden("spec.stopIf.queries[%s].prometheus.url: %s", q.Name, err)
		}
	}
	return nil
}

// observePolicy determines whether the policy permits a fault that is not recorded yet.
func (r *Reconciler) observePolicy(ctx context.Context, s *scope) {
	if s.seen.Recorded || s.fault.Status.StartTime != nil || s.seen.Deleting || s.seen.Problem != nil {
		return
	}
	limits, err := r.rulesFor(ctx, s, r.recentPolicy)
	found, err := problem.From(err)
	switch {
	case err != nil: // whatever does not begin, such as an abort, does not depend on it
		found = &problem.Problem{Reason: v1alpha1.ReasonPolicyInvalid, Message: "no fault begins: " + err.Error()}
		fallthrough
	case found != nil && !found.Lasting:
		s.seen.Withheld = found
	case found != nil:
		s.seen.Problem = found
	}
	s.limits = limits
}

// tooManyNodes refuses a fault that would taint more nodes than faults may have tainted together.
func tooManyNodes(wanted lock.Claim, limit lock.Limit) *problem.Problem {
	return forbidden("the fault would taint %d nodes, and the policy permits %d at once (%s)", len(wanted.Nodes), limit.Max, limit.Entry)
}
