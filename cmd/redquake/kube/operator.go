package kube

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
)

// OperatorNamespace is where an installation has its operator unless somebody has changed that.
const OperatorNamespace = "redquake-system"

// Managers are the Deployments of the operator: in all namespaces, or, if those may not be listed,
// in OperatorNamespace.
func (c *Client) Managers(ctx context.Context) ([]appsv1.Deployment, error) {
	of := metav1.ListOptions{
		LabelSelector: v1alpha1.LabelName + "=redquake," + v1alpha1.LabelComponent + "=manager",
	}
	return c.Deployments(ctx, of, OperatorNamespace)
}

// Deployments lists Deployments in all namespaces, or, if that is not permitted, in one.
func (c *Client) Deployments(
	ctx context.Context, of metav1.ListOptions, otherwise string,
) ([]appsv1.Deployment, error) {
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	list, err := c.List(ctx, resource, "", of)
	if IsNotPermitted(err) && otherwise != "" {
		list, err = c.List(ctx, resource, otherwise, of)
	}
	if err != nil {
		return nil, Explain(err, "list deployments")
	}
	var all []appsv1.Deployment
	for i := range list {
		var d appsv1.Deployment
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &d)
		if err != nil {
			return nil, fmt.Errorf("decode Deployment %s: %w", list[i].GetName(), err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Explain adds what was being done to an error of the API server. The API server's own sentence
// names the permission that is missing, the field that is invalid, or the admission policy that
// refuses; it is kept as it is.
func Explain(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: not permitted: %w", doing, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster does not accept the credentials of the kubeconfig: %w", doing,
			err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Refused reports whether the API server has refused an object by its content or its creator, so
// that trying again is of no use.
func Refused(err error) bool {
	_, unknown := errors.AsType[*ErrNoKind](err)
	return unknown || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsConflict(err)
}

// IsNotPermitted reports whether the user lacks a permission.
func IsNotPermitted(err error) bool {
	return apierrors.IsForbidden(err)
}

// LastRun is the name of the last run of a schedule that has ended; "" = none has.
func LastRun(s *v1alpha1.RedisExperimentSchedule) string {
	if history := s.Status.History; len(history) > 0 {
		return history[len(history)-1].Name
	}
	return ""
}

// SuchAs names a run as an example, if there is one.
func SuchAs(run string) string {
	if run == "" {
		return ""
	}
	return ", such as redisexperiment/" + run
}
