// Package drain implements the fault Drain: pods are evicted by the eviction API, as kubectl drain
// does, so that PodDisruptionBudgets apply.
package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/node"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults by eviction.
var Kinds = contract.Kinds{
	v1alpha1.FaultDrain: newDrain,
}

// drain evicts the target's pods. Their controller replaces them, on another node where one is
// drained.
type drain struct {
	pods.Kill
	node     string // "" = the pods are evicted wherever they are
	grace    *int64 // nil = the pod's own
	lasts    time.Duration
	patience time.Duration // with an eviction that is refused
}

func newDrain(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.Drain, v1alpha1.Drain{})
	d := drain{
		Kill:     pods.Kill{Deps: deps},
		node:     given.Node,
		grace:    given.GracePeriodSeconds,
		patience: cmp.Or(given.Timeout.Duration, v1alpha1.DefaultDrainTimeout),
	}
	if d.node != "" {
		d.lasts = spec.Stays()
	}
	return d
}

// record is that of a pod that is evicted.
type record struct {
	Controller pods.Controller `json:"controller"`
	Refused    *refusal        `json:"refused,omitempty"` // nil = no eviction was refused
}

// refusal is that a PodDisruptionBudget does not allow an eviction.
type refusal struct {
	Since metav1.MicroTime `json:"since"`
	Why   string           `json:"why"` // the last time, by the API server
}

func (d drain) Traits() contract.Traits {
	return contract.Traits{
		Lasts:      d.lasts,
		Takes:      d.patience + time.Minute,
		Place:      contract.Place{Node: d.node},
		EndsServer: true,
		Abrupt:     d.grace != nil && *d.grace == 0,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
		Together:   true,
		Waits:      true,
		Taints:     d.node != "",
	}
}

// Preflight refuses a pod that nothing would replace, or that the eviction API cannot evict; and
// with a node, one that could not move to another.
func (d drain) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := d.Kill.Preflight(ctx, target); err != nil {
		return err
	}
	pod, err := d.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	found, err := budgetsOf(ctx, d.Deps)
	if err != nil {
		return err
	}
	if of := over(found, pod); len(of) > 1 {
		return problem.Unsupported(
			"pod %s has more than one PodDisruptionBudget, which the eviction API does not support: %s", pod.Name,
			names(of))
	}
	err = contract.Save(target, record{Controller: pods.ControllerOf(pod)})
	if err != nil || d.node == "" {
		return err
	}
	if target.Node != d.node {
		return problem.Invalid("spec.action.drain.node: pod %s is on node %s, not on %s", target.Pod,
			target.Node, d.node)
	}
	if err := node.RequireRepelled(d.Deps, pod); err != nil {
		return err
	}
	return node.RequireOtherNode(ctx, d.Deps, pod, nil, d.node)
}

// Prepare keeps new pods off the node, before the first one is evicted.
func (d drain) Prepare(
	ctx context.Context, _ *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	if d.node == "" {
		return contract.Progress{}, nil
	}
	return node.Taint(ctx, d.Deps, d.node)
}

// Inject asks for the eviction, until a budget allows it.
func (d drain) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, _, err := contract.Load[record](target)
	if err != nil {
		return contract.Progress{}, err
	}
	pod, err := d.Pod(ctx, target.Pod)
	if err != nil {
		return contract.Progress{}, pods.IgnoreGone(err)
	}
	if string(pod.UID) != target.UID || pod.DeletionTimestamp != nil {
		return contract.Progress{}, nil
	}
	progress, err := d.Prepare(ctx, target)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	why, err := d.evict(ctx, target, pod)
	if err != nil || why == "" {
		return contract.Progress{}, err
	}
	now := metav1.NowMicro()
	if r.Refused == nil {
		r.Refused = &refusal{Since: now}
	}
	r.Refused.Why = why
	if err := contract.Save(target, r); err != nil {
		return contract.Progress{}, err
	}
	if now.Sub(r.Refused.Since.Time) > d.patience {
		return contract.Progress{}, &problem.Problem{
			Reason: v1alpha1.ReasonInjectionFailed,
			Message: fmt.Sprintf("the eviction of pod %s was refused for %s (spec.action.drain.timeout): %s", target.Pod,
				d.patience, why),
			Lasting: true,
		}
	}
	return contract.Preparing("the eviction of pod %s is refused: %s", target.Pod, why), nil
}

// evict asks the API server to evict the recorded pod, by its UID, and returns why a budget refuses
// that; "" = it is evicted, or gone.
func (d drain) evict(
	ctx context.Context, target *v1alpha1.FaultTarget, pod *corev1.Pod,
) (refused string, err error) {
	found, err := budgetsOf(ctx, d.Deps)
	if err != nil {
		return "", err
	}
	for _, b := range over(found, pod) {
		if !b.counted { // the client would repeat the request for 100 s, as the API server asks for
			return fmt.Sprintf("the disruption controller has not processed PodDisruptionBudget %s yet", b.name), nil
		}
	}
	named := metav1.ObjectMeta{Namespace: d.Namespace, Name: target.Pod}
	err = d.Cluster.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: named},
		&policyv1.Eviction{
			ObjectMeta: named,
			DeleteOptions: &metav1.DeleteOptions{
				GracePeriodSeconds: d.grace,
				Preconditions:      &metav1.Preconditions{UID: new(types.UID(target.UID))},
			},
		})
	if why := refusedBy(err); why != "" {
		return why, nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // of the pod, or of its budget
		gone, failed := pods.Ended(ctx, d.Deps, target)
		if failed != nil || gone {
			return "", failed
		}
		return fmt.Sprintf("a PodDisruptionBudget has changed meanwhile (%v)", err), nil
	}
	return "", err
}

// refusedBy is why a budget refuses an eviction, as the API server says it; "" if none does.
func refusedBy(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsTooManyRequests(err) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == policyv1.DisruptionBudgetCause {
			return cause.Message
		}
	}
	return ""
}

// Revert lets the node take pods again. What was evicted stays where it came up.
func (d drain) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[record](target)
	if err != nil || d.node == "" {
		return contract.Progress{}, err
	}
	return node.Untaint(ctx, d.Deps, d.node)
}

func (d drain) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	if d.node == "" {
		return ""
	}
	return node.ManualUntaint(d.Deps, d.node)
}

// Effect is that of a kill, and says which budget has held it up; with a node, where the
// replacement is.
func (d drain) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	r, _, err := contract.Load[record](target)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence := d.Kill.Effect(ctx, target)
	if effect == v1alpha1.EffectConfirmed && d.node != "" {
		effect, evidence = node.KeptOff(ctx, d.Deps, target, r.Controller, d.node)
	}
	if r.Refused != nil {
		evidence += "; " + r.Refused.until(target.InjectedAt)
	}
	return effect, evidence
}

// until is how long an eviction was refused; nil = it still is.
func (r *refusal) until(evicted *metav1.MicroTime) string {
	if evicted == nil {
		return "its eviction is refused: " + r.Why
	}
	return fmt.Sprintf("its eviction was refused for %s: %s",
		evicted.Sub(r.Since.Time).Round(time.Millisecond), r.Why)
}

func (d drain) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record) contract.Description {
		said := contract.Description{
			Action: fmt.Sprintf("evict pod %s %s, as soon as PodDisruptionBudgets allow it (for %s at most)",
				target.Pod, pods.GraceInWords(d.grace), d.patience),
			SelfEnding: pods.Replaced,
		}
		if d.node != "" {
			said.Action = fmt.Sprintf("taint node %s, then %s", d.node, said.Action)
			said.Revert = "untaint node " + d.node
		}
		return said
	})
}
