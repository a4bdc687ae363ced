//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

const (
	operatorNamespace  = "redquake-system"
	operatorDeployment = "redquake-controller-manager"
	operatorLease      = "redquake.redquake.dev"
)

var operatorPods = client.MatchingLabels{"app.kubernetes.io/name": "redquake", "app.kubernetes.io/component": "manager"}

// deployOperator applies the manifests server-side and waits until the operator runs and works. Its pod is always
// replaced: an image that was reloaded under the same tag is not used otherwise.
func deployOperator(ctx context.Context, manifests string) error {
	objects, err := readObjects(manifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := allowRequests(object); err != nil {
			return err
		}
		err := cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("redquake-e2e"),
			client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return restartOperator(ctx)
}

// allowRequests lets the operator send the queries of stop conditions to Services of the cluster, and names the power
// hook of TestNodePower: without the flags it sends no requests.
func allowRequests(object *unstructured.Unstructured) error {
	if object.GetKind() != "Deployment" || object.GetName() != operatorDeployment {
		return nil
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("the operator's Deployment has %d containers, want one", len(containers))
	}
	manager := containers[0].(map[string]any)
	args, _, err := unstructured.NestedStringSlice(manager, "args")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedStringSlice(manager, append(args, "--prometheus-hosts=*.svc",
		"--power-hook-url=http://"+powerHookAddress+"/power"), "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(object.Object, containers, path...)
}

// restartOperator replaces the operator's pod and waits until the new one leads.
func restartOperator(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}
	if err := cluster.Get(ctx, key, deployment); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	if deployment.Spec.Template.Annotations == nil {
		deployment.Spec.Template.Annotations = map[string]string{}
	}
	deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = time.Now().Format(time.RFC3339Nano)
	if err := cluster.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return err
	}
	began := time.Now()
	err := await.Try(ctx, 5*time.Minute, func() error {
		if err := cluster.Get(ctx, key, deployment); err != nil {
			return err
		}
		s := &deployment.Status
		if s.ObservedGeneration != deployment.Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 ||
			s.AvailableReplicas != 1 {
			return fmt.Errorf("not rolled out: %+v", *s)
		}
		if err := cluster.List(ctx, &v1alpha1.RedisLoadTestList{}); err != nil {
			return err
		}
		_, err := leaderOtherThan(ctx, "")
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, operatorLog(ctx, began))
	}
	return nil
}

// leaderOtherThan is since when a running pod of the operator, other than the one named, holds the lease.
func leaderOtherThan(ctx context.Context, other string) (time.Time, error) {
	var lease coordinationv1.Lease
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorLease}, &lease); err != nil {
		return time.Time{}, err
	}
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(operatorNamespace), operatorPods); err != nil {
		return time.Time{}, err
	}
	for _, p := range pods.Items {
		if lease.Spec.HolderIdentity != nil && lease.Spec.AcquireTime != nil && p.DeletionTimestamp == nil &&
			p.Name != other &&
			bytes.HasPrefix([]byte(*lease.Spec.HolderIdentity), []byte(p.Name+"_")) {
			return lease.Spec.AcquireTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("the lease is held by %q", ptr.Deref(lease.Spec.HolderIdentity, ""))
}

// operatorPod is the pod that leads.
func operatorPod(ctx context.Context) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(operatorNamespace), operatorPods); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i], nil
		}
	}
	return nil, errors.New("there is no operator pod")
}

// operatorLog is the log of the operator's pods since an instant.
func operatorLog(ctx context.Context, since time.Time) string {
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(operatorNamespace), operatorPods); err != nil {
		return err.Error()
	}
	var text bytes.Buffer
	for _, p := range pods.Items {
		seconds := int64(time.Since(since).Seconds()) + 1
		log, err := cluster.clientset.CoreV1().Pods(p.Namespace).
			GetLogs(p.Name, &corev1.PodLogOptions{SinceSeconds: &seconds, LimitBytes: new(int64(64 << 10))}).DoRaw(ctx)
		fmt.Fprintf(&text, "--- %s (error %v)\n%s", p.Name, err, log)
	}
	return text.String()
}

// readObjects reads all documents of a YAML file.
func readObjects(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
