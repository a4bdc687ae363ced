package rules

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/rights"
)

// Permitted refuses a fault that the operator could not inject, or not revert, as it lacks a right
// in Kubernetes. Asking takes a request for each right: only a fault that is about to be recorded
// asks.
func Permitted(ctx context.Context, api client.Client, f *v1alpha1.RedisFault) error {
	kind := declared.Of(&f.Spec)
	if kind == nil { // which another check refuses
		return nil
	}
	missing := map[bool][]string{} // by whether the resource is cluster-scoped
	for _, right := range kind.Rights(&f.Spec.Action) {
		allowed, err := isAllowed(ctx, api, f.Namespace, right)
		if apierrors.IsForbidden(err) {
			return notPermitted(
				"the operator may not create selfsubjectaccessreviews, by which it learns whether it may %s: "+
					"the cluster's ClusterRole system:basic-user grants that (%v)", right, err)
		} else if err != nil {
			return fmt.Errorf("ask whether the operator may %s: %w", right, err)
		}
		if !allowed {
			missing[right.Cluster] = append(missing[right.Cluster], right.String())
		}
	}
	if lacks := missing[false]; len(lacks) > 0 {
		return notPermitted(
			"the operator may not %s in namespace %s: bind the role %s to its ServiceAccount there",
			strings.Join(lacks, ", "), f.Namespace, rights.Prefix+kind.RoleName(false))
	}
	if lacks := missing[true]; len(lacks) > 0 {
		return notPermitted("the operator may not %s: %s", strings.Join(lacks, ", "), kind.Granting())
	}
	return nil
}

func notPermitted(format string, words ...any) error {
	return &problem.Problem{
		Reason:  v1alpha1.ReasonNotPermitted,
		Message: fmt.Sprintf(format, words...),
		Lasting: true,
	}
}

// isAllowed asks the API server whether the operator has a right.
func isAllowed(
	ctx context.Context, api client.Client, namespace string, right rights.Right,
) (bool, error) {
	resource, subresource := right.Parts()
	asked := &authorizationv1.ResourceAttributes{
		Verb:        right.Verb,
		Group:       right.Group,
		Resource:    resource,
		Subresource: subresource,
	}
	if !right.Cluster {
		asked.Namespace = namespace
	}
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked},
	}
	if err := api.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
