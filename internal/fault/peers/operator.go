package peers

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// Operator are the running pods of the Deployment of an operator, in whatever namespace. field is
// that of the fault's peers, for a Problem.
func Operator(
	ctx context.Context, deps contract.Deps, field string, of *v1alpha1.OperatorReference,
) ([]corev1.Pod, error) {
	key := client.ObjectKey{Namespace: cmp.Or(of.Namespace, deps.Namespace), Name: of.Deployment}
	deployment := &appsv1.Deployment{}
	err := deps.Live.Get(ctx, key, deployment)
	switch {
	case apierrors.IsNotFound(err):
		return nil, problem.NoTarget("%s: there is no Deployment %s", field, key)
	case apierrors.IsForbidden(err):
		return nil, noRights(field, key.Namespace, err)
	case err != nil:
		return nil, fmt.Errorf("read Deployment %s: %w", key, err)
	case deployment.Spec.Template.Labels["app.kubernetes.io/name"] == "redquake":
		return nil, problem.Invalid(
			"%s: Deployment %s is Redquake, which would not reach Redis to measure and to revert", field, key)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("the selector of Deployment %s: %w", key, err)
	}
	var page corev1.PodList
	var found []corev1.Pod
	err = paging.Each(ctx, deps.Live, &page, func() bool {
		for i := range page.Items {
			if p := &page.Items[i]; p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
				found = append(found, *p)
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		return nil, noRights(field, key.Namespace, err)
	} else if err != nil {
		return nil, fmt.Errorf("list the pods of Deployment %s: %w", key, err)
	}
	return found, nil
}

// noRights is the Problem of a namespace that the operator does not watch.
func noRights(field, namespace string, err error) error {
	return problem.Unsupported(
		"%s: Redquake has no rights in namespace %s: bind them there as in that of the fault (%v)", field,
		namespace, err)
}
