// Package resources implements the fault Resources.
package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of containers' resources.
var Kinds = contract.Kinds{
	v1alpha1.FaultResources: newResources,
}

// resizePatience is how long the kubelet may take to apply a resize, each way. It takes some
// seconds.
const resizePatience = time.Minute

// resources resizes the Redis container of a running pod, by Kubernetes' in-place resize: without a
// restart, and the pod's status shows the values in force. A pod that is replaced has the values of
// its template again: nothing is left to revert then.
type resources struct {
	contract.Deps
	limits corev1.ResourceList // as wanted: cpu, memory or both
	lasts  time.Duration
	// setting means that a load runs with the limits, whether they were others before or not.
	setting bool
	now     func() time.Time
}

func newResources(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	r := &resources{
		Deps:    deps,
		limits:  corev1.ResourceList{},
		lasts:   spec.Stays(),
		setting: spec.Setting,
		now:     time.Now,
	}
	if want := spec.Action.Resources; want != nil {
		if want.CPU != nil {
			r.limits[corev1.ResourceCPU] = *want.CPU
		}
		if want.Memory != nil {
			r.limits[corev1.ResourceMemory] = *want.Memory
		}
	}
	return r
}

func (r *resources) Traits() contract.Traits {
	return contract.Traits{Lasts: r.lasts, Exact: true}
}

func (r *resources) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := r.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if string(pod.UID) != target.UID {
		return problem.NotYet("pod %s was replaced while it was chosen", target.Pod)
	}
	container := containerNamed(pod, target.Container)
	if container == nil {
		return problem.Invalid("pod %s has no container %s", target.Pod, target.Container)
	}
	for _, name := range resized {
		if want, wanted := r.limits[name]; wanted {
			err := r.checkResize(pod.Name, container, name, want)
			if err != nil {
				return err
			}
		}
	}
	if err := r.fitsMemory(ctx, target, container); err != nil {
		return err
	}
	record := resizeRecord{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for name := range r.limits {
		record.Limits[name] = container.Resources.Limits[name]
		if request, ok := container.Resources.Requests[name]; ok {
			record.Requests[name] = request
		}
	}
	if err := r.rehearse(ctx, target, record); err != nil {
		return err
	}
	return contract.Save(target, record)
}

// checkResize refuses a limit that would change nothing, could not be reverted, or would restart
// the container.
func (r *resources) checkResize(
	pod string, container *corev1.Container, name corev1.ResourceName, want resource.Quantity,
) error {
	limit, limited := container.Resources.Limits[name]
	switch {
	case want.Sign() <= 0:
		return problem.Invalid("spec.action.resources.%s: %s: must be more than 0", name, want.String())
	case !limited:
		return problem.Unsupported(
			"container %s of pod %s has no %s limit: one that is added to a running pod cannot be removed "+
				"again. Set a limit in its template", container.Name, pod, name)
	case limit.Cmp(want) == 0 && !r.setting:
		return problem.Invalid(
			"spec.action.resources.%s: container %s of pod %s has a limit of %s already", name,
			container.Name, pod, limit.String())
	case restarts(container, name):
		return problem.Unsupported(
			"container %s of pod %s has resizePolicy RestartContainer for %s: a resize would restart the "+
				"server, which is the fault ProcessCrash", container.Name, pod, name)
	}
	return nil
}

// rehearse makes a dry run of the resize: the API server checks classes of service, limits and
// quotas.
func (r *resources) rehearse(
	ctx context.Context, target *v1alpha1.FaultTarget, record resizeRecord,
) error {
	err := r.resize(ctx, target, r.wanted(record.before()), client.DryRunAll)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return problem.Unsupported(
			"the API server cannot resize running pods: that needs Kubernetes 1.33 or later")
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return problem.Unsupported("the API server refuses: %v", err)
	}
	return err
}

// fitsMemory refuses a limit below the memory that the server uses: the kernel would kill it, or
// the kubelet would not apply the limit.
func (r *resources) fitsMemory(
	ctx context.Context, target *v1alpha1.FaultTarget, container *corev1.Container,
) error {
	want, wanted := r.limits[corev1.ResourceMemory]
	limit := container.Resources.Limits[corev1.ResourceMemory]
	if !wanted || want.Cmp(limit) > 0 {
		return nil
	}
	info, err := r.Info(ctx, target.Address, "memory")
	if err != nil {
		return problem.NotYet("the memory that Redis at %s uses cannot be read: %v", target.Address, err)
	}
	used := max(info.Int("used_memory"), info.Int("used_memory_rss"))
	if used <= 0 {
		return problem.Unsupported(
			"INFO of Redis at %s does not show its memory (used_memory, used_memory_rss): a limit below it would kill it",
			target.Address)
	}
	if want.Value() <= used {
		return problem.Invalid(
			"spec.action.resources.memory: %s: the server of pod %s uses %s (used_memory %d, "+
				"used_memory_rss %d bytes): with that limit it would be killed (OOMKilled), or the kubelet would not apply it",
			want.String(), target.Pod, resource.NewQuantity(used, resource.BinarySI),
			info.Int("used_memory"), info.Int("used_memory_rss"))
	}
	return nil
}

func (r *resources) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, _, err := contract.Load[resizeRecord](target)
	if err != nil {
		return false, err
	}
	container, _, err := r.container(ctx, target)
	if err != nil {
		return false, err
	}
	return container == nil || has(container.Resources, r.wanted(record.before())), nil
}

func (r *resources) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[resizeRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	container, pod, err := r.container(ctx, target)
	if err != nil || container == nil {
		return contract.Progress{}, err
	}
	if !recorded {
		return contract.Progress{}, fmt.Errorf("pod %s has no record of its container's resources",
			target.Pod)
	}
	old := record.before()
	want := r.wanted(old)
	switch {
	case has(container.Resources, want):
	case has(container.Resources, old):
		if err := r.resize(ctx, target, want); err != nil {
			return contract.Progress{}, err
		}
		return contract.Underway("the kubelet of node %s is to resize container %s to %s", target.Node,
			target.Container, said(want)), nil
	default:
		return contract.Progress{}, foreignResize(target, container)
	}
	since := r.now()
	if target.InjectedAt != nil {
		since = target.InjectedAt.Time
	}
	return r.applied(pod, target, want, since)
}

func (r *resources) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[resizeRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	container, pod, err := r.container(ctx, target)
	if err != nil || container == nil || !recorded {
		return contract.Progress{}, err
	}
	old, begun := record.before(), record.RevertingSince != nil
	before, own, others := r.compare(container.Resources, old)
	if len(own) == 0 && !begun && target.InjectedAt == nil {
		return contract.Progress{}, nil // never resized
	}
	back := only(old, append(before, own...)...)
	record.Left = only(container.Resources, others...)
	if len(own) > 0 {
		if err := r.resize(ctx, target, back); err != nil {
			return contract.Progress{}, err
		}
		record.RevertingSince = new(r.now())
		return contract.Underway("the kubelet of node %s is to restore container %s to %s", target.Node,
			target.Container, said(back)), contract.Save(target, record)
	}
	// somebody else restored it, or an operator process that ended before it could record that
	if !begun {
		record.RevertingSince = new(r.now())
	}
	err = contract.Save(target, record)
	if err != nil || len(back.Limits) == 0 {
		return contract.Progress{}, err
	}
	return r.applied(pod, target, back, *record.RevertingSince)
}

func (r *resources) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[resizeRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	container, pod, err := r.container(ctx, target)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case container == nil && r.setting:
		return r.replaced(ctx, target, record)
	case container == nil:
		return contract.Inconclusive(
			"pod %s (%s) is gone or replaced: its replacement has the resources of the template", target.Pod,
			target.UID)
	}
	old := record.before()
	want := r.wanted(old)
	if !has(container.Resources, want) {
		return contract.NotObserved("container %s still has %s", target.Container,
			said(container.Resources))
	}
	switch progress, err := r.applied(pod, target, want, r.now()); {
	case err != nil:
		return contract.Unseen(err)
	case !progress.Complete():
		return v1alpha1.EffectInconclusive, progress.Message
	}
	evidence := fmt.Sprintf("the kubelet gives container %s of pod %s %s instead of %s",
		target.Container, target.Pod, said(want), said(old))
	n := r.RestartCount(pod, target.Container) - target.RestartCount
	if n > 0 {
		evidence += fmt.Sprintf("; it restarted %d times since the fault was recorded", n)
	}
	return v1alpha1.EffectConfirmed, evidence
}

// replaced is the effect of a setting on a pod that was replaced: its replacement may have the
// limits by its template.
func (r *resources) replaced(
	ctx context.Context, target *v1alpha1.FaultTarget, record resizeRecord,
) (v1alpha1.Effect, string) {
	pod, err := r.Pod(ctx, target.Pod)
	if client.IgnoreNotFound(err) != nil {
		return contract.Unseen(err)
	}
	want := r.wanted(record.before())
	if err == nil && pod.DeletionTimestamp == nil {
		container := containerNamed(pod, target.Container)
		if container != nil && has(container.Resources, want) {
			return contract.Confirmed("pod %s was replaced, and has %s by its template",
				target.Pod, said(want))
		}
	}
	return contract.NotObserved(
		"pod %s (%s) is gone or replaced: its replacement has the resources of the template", target.Pod,
		target.UID)
}

// applied is complete once the kubelet reports the values in force. A condition that it cannot
// apply them is an error; the kubelet continues to try.
func (r *resources) applied(
	pod *corev1.Pod, target *v1alpha1.FaultTarget, want corev1.ResourceRequirements, since time.Time,
) (contract.Progress, error) {
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue ||
			c.ObservedGeneration != 0 && c.ObservedGeneration < pod.Generation {
			continue // of an earlier resize
		}
		switch {
		case c.Type == corev1.PodResizePending:
			return contract.Progress{}, fmt.Errorf(
				"the kubelet of node %s cannot resize pod %s to %s (%s): %s", target.Node, target.Pod,
				said(want), c.Reason, c.Message)
		case c.Type == corev1.PodResizeInProgress && c.Reason == corev1.PodReasonError:
			return contract.Progress{}, fmt.Errorf("the kubelet of node %s fails to resize pod %s to %s: %s",
				target.Node, target.Pod, said(want), c.Message)
		case c.Type == corev1.PodResizeInProgress:
			return r.patiently(fmt.Sprintf("the kubelet of node %s is resizing pod %s", target.Node,
				target.Pod), since)
		}
	}
	inForce := inForce(pod, target.Container)
	if inForce == nil {
		return r.patiently(fmt.Sprintf("the kubelet of node %s shows no resources of container %s",
			target.Node, target.Container), since)
	}
	if !has(corev1.ResourceRequirements{Limits: inForce.Limits}, corev1.ResourceRequirements{
		Limits: want.Limits,
	}) {
		return r.patiently(fmt.Sprintf("the kubelet of node %s has not applied %s yet", target.Node,
			said(want)), since)
	}
	return contract.Progress{}, nil
}

func (r *resources) patiently(missing string, since time.Time) (contract.Progress, error) {
	if r.now().Sub(since) > resizePatience {
		return contract.Progress{}, fmt.Errorf("not resized within %s: %s", resizePatience, missing)
	}
	return contract.Underway("%s", missing), nil
}

func (r *resources) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	record, _, err := contract.Load[resizeRecord](target)
	if err != nil {
		return ""
	}
	back := record.before()
	for name := range record.Left.Limits {
		delete(back.Limits, name)
		delete(back.Requests, name)
	}
	patch, err := json.Marshal(resizing("", target.Container, back))
	if err != nil || len(back.Limits) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"kubectl -n %s patch pod %s --subresource resize --patch '%s'; or delete the pod: its "+
			"replacement has the resources of the template", r.Namespace, target.Pod, patch)
}

// container reads the target's container and pod; nil where the pod is terminating, deleted or
// replaced.
func (r *resources) container(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (*corev1.Container, *corev1.Pod, error) {
	pod, err := r.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err),
		err == nil && (string(pod.UID) != target.UID || pod.DeletionTimestamp != nil):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	container := containerNamed(pod, target.Container)
	if container == nil {
		return nil, nil, fmt.Errorf("pod %s has no container %s", target.Pod, target.Container)
	}
	return container, pod, nil
}

// resize patches the recorded pod: the API server refuses a patch with the UID of another one.
func (r *resources) resize(
	ctx context.Context, target *v1alpha1.FaultTarget, to corev1.ResourceRequirements,
	options ...client.SubResourcePatchOption,
) error {
	patch, err := json.Marshal(resizing(target.UID, target.Container, to))
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: target.Pod}}
	err = r.Cluster.SubResource("resize").Patch(ctx, pod,
		client.RawPatch(types.StrategicMergePatchType, patch), options...)
	if err != nil {
		return fmt.Errorf("resize container %s of pod %s: %w", target.Container, target.Pod, err)
	}
	return nil
}

func foreignResize(target *v1alpha1.FaultTarget, container *corev1.Container) error {
	return fmt.Errorf(
		"container %s of pod %s has %s, neither what it had before the fault nor the fault's: somebody else resizes it, so it is not changed",
		container.Name, target.Pod, said(container.Resources))
}
