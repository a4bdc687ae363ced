// Package pod implements the fault PodKill, and the functions that faults which delete pods share.
package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Kinds are the faults of pods.
var Kinds = contract.Kinds{
	v1alpha1.FaultPodKill: newPodKill,
}

// Kill deletes the pod. There is nothing to revert: the pod's controller replaces it.
type Kill struct {
	contract.Deps
	contract.Instant
	grace *int64 // nil = the pod's own
}

func newPodKill(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	kill := Kill{Deps: deps}
	if spec.Action.PodKill != nil {
		kill.grace = spec.Action.PodKill.GracePeriodSeconds
	}
	if spec.KeepsDown() {
		return keptDown{Kill: kill, lasts: spec.Duration.Duration}
	}
	return kill
}

// Traits implements contract.Injector.
func (k Kill) Traits() contract.Traits {
	return contract.Traits{
		EndsServer: true,
		Abrupt:     k.grace != nil && *k.grace == 0,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
		Together:   true,
	}
}

// Preflight refuses a pod that nothing would replace.
func (k Kill) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := k.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	return RequireController(pod)
}

// Begun is true of a pod that is terminating, deleted or replaced.
func (k Kill) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return Ended(ctx, k.Deps, target)
}

// Inject deletes the recorded pod, by its UID.
func (k Kill) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	uid := types.UID(target.UID)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: target.Pod}}
	options := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if k.grace != nil {
		options = append(options, client.GracePeriodSeconds(*k.grace))
	}
	return contract.Progress{}, IgnoreGone(k.Cluster.Delete(ctx, pod, options...))
}

// Effect is confirmed by a pod that was deleted or replaced.
func (k Kill) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	pod, err := k.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return contract.Confirmed("pod %s (%s) is gone", target.Pod, target.UID)
	case err != nil:
		return contract.Unseen(err)
	case string(pod.UID) == target.UID && pod.DeletionTimestamp == nil:
		return contract.NotObserved("pod %s (%s) still runs", target.Pod, target.UID)
	case string(pod.UID) == target.UID:
		return contract.Inconclusive("pod %s (%s) is still terminating", target.Pod,
			target.UID)
	}
	evidence := fmt.Sprintf("pod %s is %s instead of %s", target.Pod, pod.UID, target.UID)
	server, err := k.Servers.Ask(ctx, k.Address(pod), k.Login)
	if err == nil && target.RunID != "" && server.RunID == target.RunID {
		return v1alpha1.EffectInconclusive, evidence + ", but its server still has run_id " + server.RunID
	}
	if err == nil {
		evidence += fmt.Sprintf(", its server has run_id %s instead of %s", server.RunID,
			orUnknown(target.RunID))
	}
	return v1alpha1.EffectConfirmed, evidence
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown one"
	}
	return s
}
