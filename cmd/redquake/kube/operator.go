package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &d); err != nil {
			return nil, fmt.Errorf("decode Deployment %s: %w", list[i].GetName(), err)
		}
		all = append(all, d)
	}
	return all, nil
}
