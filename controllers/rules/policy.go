// Package rules reads what decides whether faults may begin in a namespace: the policy of the
// cluster, the flags of the operator, and the annotations and labels of namespaces.
package rules

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/prometheus"
)

// The cluster's policy decides which faults may begin. A fault is judged by it when it is first
// seen, and while it waits, from a copy that may be some seconds old; before it records its
// targets, and once more before its first injection, as the API server has it. A fault that has
// begun is not judged any more.

// Reader reads the rules for faults.
type Reader struct {
	APIReader client.Reader // not cached
	Clock     clock.PassiveClock
	// that of the policy; "" = unknown, then the default one applies
	OperatorNamespace string
	Supported         []v1alpha1.FaultType // the types that are switched on; nil = all
	Prometheus        *prometheus.Client   // evaluates the queries of stop conditions
	PowerHook         bool                 // the administrator has configured one
	Namespaces        Namespaces
	Copy              *PolicyCopy
}

// PolicyCopy is the policy that was read last. Its zero value is ready for use.
type PolicyCopy struct {
	mu    sync.Mutex
	at    time.Time // when it was read; zero = never
	known *policy.Policy
	err   error
}

// PolicyAge is how old a copy may be.
const PolicyAge = 5 * time.Second

// Recent is the policy as it was some seconds ago at most.
func (r Reader) Recent(ctx context.Context) (*policy.Policy, error) {
	r.Copy.mu.Lock()
	defer r.Copy.mu.Unlock()
	now := r.Clock.Now()
	if r.Copy.at.IsZero() || now.Sub(r.Copy.at) >= PolicyAge || now.Before(r.Copy.at) {
		ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
		defer cancel()
		r.Copy.known, r.Copy.err = r.Live(ctx)
		r.Copy.at = r.Clock.Now()
	}
	return r.Copy.known, r.Copy.err
}

// Live is the policy as the API server has it. Its error is a Problem if it has to be corrected.
func (r Reader) Live(ctx context.Context) (*policy.Policy, error) {
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
	text, ok := stored.Data[policy.Key]
	if !ok {
		return nil, invalidPolicy("ConfigMap %s has no key %s", key, policy.Key)
	}
	found, err := policy.Parse(text, declared.Types())
	if err != nil {
		return nil, invalidPolicy("%s of ConfigMap %s: %v", policy.Key, key, err)
	}
	return found, nil
}

func invalidPolicy(format string, words ...any) error {
	return &problem.Problem{
		Reason:  v1alpha1.ReasonPolicyInvalid,
		Message: "no fault begins: " + fmt.Sprintf(format, words...),
	}
}

func forbidden(format string, words ...any) *problem.Problem {
	return &problem.Problem{
		Reason:  v1alpha1.ReasonForbiddenByPolicy,
		Message: fmt.Sprintf(format, words...),
		Lasting: true,
	}
}

// For are the limits for a fault, by the policy that read returns. Its error is a Problem if the
// fault is forbidden, or the policy cannot be applied.
func (r Reader) For(
	ctx context.Context, f *v1alpha1.RedisFault, read func(context.Context) (*policy.Policy, error),
) ([]lock.Limit, error) {
	kind := f.Spec.Action.Type
	if r.Supported != nil && !slices.Contains(r.Supported, kind) {
		return nil, forbidden(
			"spec.action.type: %s is switched off in this installation, by the flag --faults of the manager",
			kind)
	}
	if err := r.mayAsk(f.Spec.StopIf); err != nil {
		return nil, err
	}
	if f.Spec.Action.SwitchesPower() && !r.PowerHook {
		return nil, forbidden("spec.action.nodeLoss.method: Power needs a power hook, and this installation " +
			"has none: an administrator names it by --power-hook-url of the manager")
	}
	current, err := read(ctx)
	if err != nil {
		return nil, err
	}
	var labels map[string]string
	if current.NeedsLabels() {
		namespace, err := r.Namespaces.Of(ctx, f.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read namespace %s: %w", f.Namespace, err)
		}
		labels = namespace.Labels
	}
	why := current.Refusal(f.Namespace, labels, &f.Spec)
	if why != "" {
		return nil, forbidden("%s of ConfigMap %s/%s", why, r.OperatorNamespace, policy.ConfigMap)
	}
	var limits []lock.Limit
	for _, limit := range current.Limits(f.Namespace, labels) {
		limits = append(limits, lock.Limit(limit))
	}
	return limits, nil
}

// mayAsk refuses a fault with a stop condition that the manager may not evaluate: it would run
// without its guard.
func (r Reader) mayAsk(conditions *v1alpha1.StopConditions) error {
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

// TooManyNodes refuses a fault that would taint more nodes than faults may have tainted together.
func TooManyNodes(wanted lock.Claim, limit lock.Limit) *problem.Problem {
	return forbidden("the fault would taint %d nodes, and the policy permits %d at once (%s)",
		len(wanted.Nodes), limit.Max, limit.Entry)
}
