// Package operatoroutage implements the fault OperatorOutage: the Deployment of the operator that
// looks after a Redis is scaled to 0, so that nobody does what it would do.
package operatoroutage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of operators.
var Kinds = contract.Kinds{
	v1alpha1.FaultOperatorOutage: func(
		spec *v1alpha1.RedisFaultSpec, deps contract.Deps,
	) contract.Injector {
		given := ptr.Deref(spec.Action.OperatorOutage, v1alpha1.OperatorOutage{})
		return outage{
			Deps:      deps,
			namespace: cmp.Or(given.Namespace, deps.Namespace),
			name:      given.Deployment,
			lasts:     spec.Stays(),
		}
	},
}

// outage scales a Deployment to 0.
type outage struct {
	contract.Deps
	namespace, name string // of the Deployment
	lasts           time.Duration
}

// record is what an outage is reverted by.
type record struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Replicas  int32  `json:"replicas"` // before; at least 1
	// that somebody else has set meanwhile; they were left
	Foreign *int32 `json:"foreign,omitempty"`
}

func (r record) String() string {
	return "Deployment " + r.Namespace + "/" + r.Name
}

func (o outage) Traits() contract.Traits {
	return contract.Traits{
		Lasts: o.lasts,
		Exact: true,
		Apart: true,
		Place: contract.Place{Deployment: types.NamespacedName{Namespace: o.namespace, Name: o.name}},
	}
}

// Preflight refuses a Deployment that is not there, that has no pods anyway, or that is this
// operator itself.
func (o outage) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	r := record{Namespace: o.namespace, Name: o.name}
	err := guard.Unprotected(ctx, o.Live, o.namespace)
	var deployment *appsv1.Deployment
	if err == nil {
		deployment, err = o.read(ctx, r)
	}
	switch {
	case apierrors.IsNotFound(err):
		return problem.NoTarget("%s: there is no %s", field, r)
	case apierrors.IsForbidden(err):
		return problem.Unsupported("%s: Redquake has no rights in namespace %s: bind them there as in that of the "+
			"fault (%v)", field, o.namespace, err)
	case err != nil:
		return err
	}
	why := notAnOperator(deployment)
	if why == "" {
		why, err = o.ofRedis(ctx, deployment)
		if err != nil {
			return err
		}
	}
	if why != "" {
		return problem.Invalid("%s: %s %s", field, r, why)
	}
	r.UID, r.Replicas = string(deployment.UID), replicasOf(deployment)
	if r.Replicas == 0 {
		return problem.NotYet("%s: %s has 0 replicas: waiting until it has some", field, r)
	}
	return contract.Save(target, r)
}

const field = "spec.action.operatorOutage.deployment"

// notAnOperator is why a Deployment cannot be that of an operator; "" = it can. Redis and its
// sentinels are behind guards, which this fault does not ask.
func notAnOperator(deployment *appsv1.Deployment) string {
	template := &deployment.Spec.Template
	if template.Labels["app.kubernetes.io/name"] == "redquake" {
		return "is Redquake: nobody would be left to revert the fault"
	}
	for _, container := range template.Spec.Containers {
		for _, port := range container.Ports {
			serves := port.ContainerPort == 6379 || port.ContainerPort == 26379 ||
				strings.Contains(port.Name, "redis") || strings.Contains(port.Name, "sentinel")
			if serves {
				return fmt.Sprintf("serves Redis at port %d: what breaks that is PodKill or PodTemplate, behind their guards",
					port.ContainerPort)
			}
		}
	}
	return ""
}

// ofRedis is why the Deployment is none of an operator as its pods are among those of the target;
// "" = they are not.
func (o outage) ofRedis(ctx context.Context, deployment *appsv1.Deployment) (string, error) {
	if o.namespace != o.Namespace {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return "", err
	}
	pods, err := o.LatestPods(ctx)
	for i := range pods {
		if selector.Matches(labels.Set(pods[i].Labels)) {
			return fmt.Sprintf("has pod %s of the target: it is Redis itself", pods[i].Name), nil
		}
	}
	return "", err
}

// Begun is true of a Deployment without replicas.
func (o outage) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	_, deployment, err := o.recall(ctx, target)
	return err == nil && deployment != nil && replicasOf(deployment) == 0, err
}

// Inject scales the Deployment to 0, unless somebody has changed it since the record.
func (o outage) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, deployment, err := o.recall(ctx, target)
	if err != nil || deployment == nil {
		return contract.Progress{}, err
	}
	switch now := replicasOf(deployment); now {
	case 0:
		return contract.Progress{}, nil
	case r.Replicas:
		if err := guard.Unprotected(ctx, o.Live, o.namespace); err != nil { // it may be since
			return contract.Progress{}, err
		}
		return contract.Progress{}, o.scale(ctx, deployment, 0)
	default:
		return contract.Progress{}, fmt.Errorf(
			"%s has %d replicas, and had %d when it was recorded: somebody else scales it", r, now, r.Replicas)
	}
}

// Revert scales it back. What somebody else has set meanwhile is left.
func (o outage) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, deployment, err := o.recall(ctx, target)
	if err != nil || deployment == nil {
		return contract.Progress{}, err
	}
	switch now := replicasOf(deployment); now {
	case 0:
		return contract.Progress{}, o.scale(ctx, deployment, r.Replicas)
	case r.Replicas:
		return contract.Progress{}, nil
	default:
		r.Foreign = &now
		return contract.Progress{}, contract.Save(target, r)
	}
}

// Warnings say what was left of somebody else.
func (o outage) Warnings(target *v1alpha1.FaultTarget) []string {
	r, _, err := contract.Load[record](target)
	if err != nil || r.Foreign == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d replicas, which somebody else has set, and had %d before the fault: they were left",
		r, *r.Foreign, r.Replicas)}
}

// ManualRevertCommand scales it back.
func (o outage) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	r, recorded, err := contract.Load[record](target)
	if err != nil || !recorded {
		return ""
	}
	return fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=%d", r.Namespace, r.Name, r.Replicas)
}

// Effect is confirmed once none of its pods is left.
func (o outage) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	r, deployment, err := o.recall(ctx, target)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case deployment == nil:
		return contract.NotObserved("%s was deleted or replaced", r)
	case replicasOf(deployment) > 0:
		return contract.NotObserved("%s has %d replicas: somebody else has scaled it", r, replicasOf(deployment))
	}
	status := &deployment.Status
	ending := status.Replicas + ptr.Deref(status.TerminatingReplicas, 0)
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return contract.Inconclusive("the controller of %s has not scaled it yet", r)
	case ending > 0:
		return contract.Inconclusive("%d pods of %s have not ended yet", ending, r)
	case status.TerminatingReplicas == nil: // an older cluster, which does not count them
		return contract.Confirmed("%s has no pods but such as are ending, and had %d", r, r.Replicas)
	}
	return contract.Confirmed("%s has no pods, and had %d", r, r.Replicas)
}

func (o outage) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(r record) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf("scale %s, the operator of pod %s, from %d to 0 replicas", r, target.Pod, r.Replicas),
			Revert: fmt.Sprintf("scale it to %d again", r.Replicas),
		}
	})
}

// recall is the record of a target, and its Deployment; nil = there is no record, or it was deleted
// or replaced.
func (o outage) recall(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (r record, deployment *appsv1.Deployment, err error) {
	r, recorded, err := contract.Load[record](target)
	if err != nil || !recorded {
		return r, nil, err
	}
	deployment, err = o.read(ctx, r)
	if apierrors.IsNotFound(err) || err == nil && string(deployment.UID) != r.UID {
		return r, nil, nil
	}
	return r, deployment, err
}

func (o outage) read(ctx context.Context, r record) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, deployment)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	return deployment, nil
}

// scale sets the number of replicas, by the subresource, which permits nothing else. A change of the
// Deployment since it was read is a conflict.
func (o outage) scale(ctx context.Context, deployment *appsv1.Deployment, replicas int32) error {
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       deployment.Namespace,
			Name:            deployment.Name,
			ResourceVersion: deployment.ResourceVersion,
		},
		Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	err := o.Cluster.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale))
	if err != nil {
		return fmt.Errorf("scale Deployment %s/%s to %d replicas: %w", deployment.Namespace, deployment.Name, replicas,
			err)
	}
	return nil
}

// replicasOf is spec.replicas, 1 by default.
func replicasOf(deployment *appsv1.Deployment) int32 {
	return ptr.Deref(deployment.Spec.Replicas, 1)
}
