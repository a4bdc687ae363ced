//go:build integration

package admission_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/manifests"
)

// The rights of the component network-faults permit any container, and any program in it: its policies leave the
// operator its own container and its own program. They ask nobody else.
func TestNetworkFaultsAddTheirContainerOnly(t *testing.T) {
	namespace := newNamespace(t)
	var image string
	var manager *unstructured.Unstructured
	for _, o := range manifests.Installation(t, "default", "network-faults") {
		switch {
		case o.GetKind() == "Deployment":
			o.SetNamespace(namespace)
			image = only[appsv1.Deployment](t, []*unstructured.Unstructured{o}).Spec.Template.Spec.Containers[0].Image
			manager = o
			if err := strict.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			continue
		case !strings.Contains(o.GetName(), "network-faults"):
			continue
		case o.GetKind() == "ValidatingAdmissionPolicyBinding" && strings.HasSuffix(o.GetName(), "-image"):
			if err := unstructured.SetNestedField(o.Object, namespace, "spec", "paramRef", "namespace"); err != nil {
				t.Fatal(err)
			}
		case !strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy"):
			continue
		}
		created(t, o)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "redis-0", Labels: map[string]string{"app": "redis"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: "redis:7"}}},
	}
	if err := strict.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	operator := userWith(t, "RedisFault", namespace, "get pods", "patch pods/ephemeralcontainers", "create pods/exec",
		"get pods/exec")
	operator.grantOnCluster(rights.ActForOthers.String())
	preflight := func(image string) error {
		injector, err := fault.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{
			Type:        v1alpha1.FaultNetworkLoss,
			NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%"},
		}}, contract.Deps{
			Redis:    target.Redis{Namespace: namespace, Live: operator},
			Cluster:  operator,
			Operator: contract.Operator{Image: image},
		})
		if err != nil {
			return err
		}
		return injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID)})
	}
	await.Until(t, "the policy to be in force, and to admit the operator's container", func() error {
		err := preflight("example.com/other:1")
		return await.That(err != nil && strings.Contains(err.Error(), "the operator adds its own image to pods only"),
			"another image: %v", err)
	})
	await.Until(t, "the operator's container to be admitted", func() error { return preflight(image) })

	ours := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name:    "redquake-network-0",
		Image:   image,
		Command: []string{"/netfault", "sleep"},
		SecurityContext: &corev1.SecurityContext{
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}}
	add := func(by client.Client, change func(*corev1.EphemeralContainer)) error {
		one := ours.DeepCopy()
		if change != nil {
			change(one)
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []any{one}}})
		if err != nil {
			return err
		}
		return by.SubResource("ephemeralcontainers").Patch(t.Context(), pod.DeepCopy(),
			client.RawPatch(types.StrategicMergePatchType, patch), client.DryRunAll)
	}
	if err := add(operator, nil); err != nil {
		t.Errorf("its own: %v", err)
	}
	const admin, nothing = "NET_ADMIN and nothing else", "has nothing of the pod but its network"
	for name, tc := range map[string]struct {
		change func(*corev1.EphemeralContainer)
		says   string
	}{
		"another name":    {func(c *corev1.EphemeralContainer) { c.Name = "debugger" }, "for faults of the network only"},
		"another program": {func(c *corev1.EphemeralContainer) { c.Command = []string{"/redquake", "load"} }, nothing},
		"arguments":       {func(c *corev1.EphemeralContainer) { c.Args = []string{"x"} }, nothing},
		"environment": {
			func(c *corev1.EphemeralContainer) { c.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }, nothing,
		},
		"processes of the pod": {func(c *corev1.EphemeralContainer) { c.TargetContainerName = "redis" }, nothing},
		"privileged": {func(c *corev1.EphemeralContainer) {
			c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = new(true), nil
		}, admin},
		"another capability": {func(c *corev1.EphemeralContainer) {
			c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, "SYS_ADMIN")
		}, admin},
		"no restriction":    {func(c *corev1.EphemeralContainer) { c.SecurityContext = nil }, admin},
		"capabilities kept": {func(c *corev1.EphemeralContainer) { c.SecurityContext.Capabilities.Drop = nil }, admin},
		"a writable system": {func(c *corev1.EphemeralContainer) { c.SecurityContext.ReadOnlyRootFilesystem = nil }, admin},
		"root":              {func(c *corev1.EphemeralContainer) { c.SecurityContext.RunAsUser = new(int64(0)) }, admin},
		"another label of SELinux": {func(c *corev1.EphemeralContainer) {
			c.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"}
		}, admin},
		"a terminal":           {func(c *corev1.EphemeralContainer) { c.TTY = true }, nothing},
		"all calls":            {func(c *corev1.EphemeralContainer) { c.SecurityContext.SeccompProfile = nil }, admin},
		"escalation by setuid": {func(c *corev1.EphemeralContainer) { c.SecurityContext.AllowPrivilegeEscalation = nil }, admin},
	} {
		if err := add(operator, tc.change); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
		if tc.says == "for faults of the network only" {
			if err := add(strict, tc.change); err != nil {
				t.Errorf("%s, by an administrator: %v", name, err)
			}
		}
	}

	ofNode := pod.DeepCopy()
	ofNode.ResourceVersion, ofNode.Name, ofNode.Spec.HostNetwork = "", "of-node", true
	if err := strict.Create(t.Context(), ofNode); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []any{ours}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.SubResource("ephemeralcontainers").Patch(t.Context(), ofNode.DeepCopy(),
		client.RawPatch(types.StrategicMergePatchType, patch), client.DryRunAll); err == nil ||
		!strings.Contains(err.Error(), "whose network is that of its node") {
		t.Errorf("the network of a node: %v", err)
	}

	run := runsAs(t, operator.name, namespace, pod.Name)
	const refused = "the operator runs the programs of its own containers in pods only"
	for name, said := range map[string]string{
		"another container": run("redis", "/netfault", "show", "x"),
		"another program":   run("redquake-network-0", "/bin/sh"),
	} {
		if !strings.Contains(said, refused) {
			t.Errorf("%s: %s", name, said)
		}
	}
	if said := run("redquake-network-0", "/netfault", "show", "x"); strings.Contains(said, refused) ||
		!strings.Contains(said, "redquake-network-0") && !strings.Contains(said, "redis-0") {
		t.Errorf("its own program: %s", said)
	}

	// Without the Deployment nobody's containers are refused for the image.
	if err := strict.Delete(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the API server to know that it is gone", func() error {
		return add(operator, func(c *corev1.EphemeralContainer) { c.Image = "example.com/other:1" })
	})
	if err := add(strict, func(c *corev1.EphemeralContainer) { c.Name = "debugger" }); err != nil {
		t.Errorf("an administrator, without the Deployment: %v", err)
	}
}
