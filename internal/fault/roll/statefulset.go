package roll

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/problem"
)

// SetOf is the StatefulSet of a target's pod. A Problem says that there is none, or that its owner
// would revert a change of its template. why is the reason for a roll, and advice what to set in
// the resource of such an owner.
func SetOf(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, why string,
	advice func(*owner.Owner) string,
) (*appsv1.StatefulSet, error) {
	pod, err := deps.Pod(ctx, target.Pod)
	if err != nil {
		return nil, err
	}
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "StatefulSet" {
		return nil, problem.Unsupported(
			"%s, and pod %s does not belong to a StatefulSet, the only kind that is rolled", why, target.Pod)
	}
	set := &appsv1.StatefulSet{}
	err = deps.Live.Get(ctx, client.ObjectKey{Namespace: deps.Namespace, Name: controller.Name},
		set)
	if err != nil {
		return nil, err
	}
	above, err := owner.Of(ctx, deps.Live, set)
	if err == nil && above != nil && above.Paused() == "" {
		err = problem.Unsupported(
			"%s, and StatefulSet %s belongs to %s, whose operator would revert a change of it: %s", why,
			set.Name, above, advice(above))
	}
	return set, err
}

// Recorded reads the StatefulSet of a record; nil where it was deleted or replaced.
func Recorded(
	ctx context.Context, deps contract.Deps, name, uid string,
) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	err := deps.Live.Get(ctx, client.ObjectKey{Namespace: deps.Namespace, Name: name}, set)
	if apierrors.IsNotFound(err) || err == nil && string(set.UID) != uid {
		return nil, nil //nolint:nilnil // there is none
	}
	return set, err
}

// Ineffective is the error of a change of the template that did not reach the server of a new pod.
type Ineffective struct{ Message string }

func (e *Ineffective) Error() string {
	return e.Message
}

// Retried turns an error that may pass into progress: a roll takes minutes, and is not abandoned
// for a conflict or for an API server that restarts.
func Retried(progress contract.Progress, err error) (contract.Progress, error) {
	var refused *Ineffective
	if err == nil || lasting(err) || errors.As(err, &refused) {
		return progress, err
	}
	return contract.Underway("%v", err), nil
}

// lasting reports whether an error of the API server will not pass.
func lasting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
