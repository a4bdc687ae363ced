//go:build integration

package children

import (
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// underRestrictedV2 creates load pods and the manager's pod in a namespace that assigns user IDs, under the rules by
// which OpenShift admits them.
func underRestrictedV2(t *testing.T, c client.Client, test *v1alpha1.RedisLoadTest) {
	for _, object := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{},
		&admissionv1.ValidatingAdmissionPolicyBinding{},
	} {
		file := "testdata/restricted_v2.yaml"
		if _, is := object.(*admissionv1.ValidatingAdmissionPolicyBinding); is {
			file = "testdata/restricted_v2_binding.yaml"
		}
		read(t, file, object)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "openshift", Annotations: map[string]string{"openshift.io/sa.scc.uid-range": "1000680000/10000"},
		Labels: map[string]string{"scc": "restricted-v2"},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift", Name: "default"}}
	for _, object := range []client.Object{namespace, account} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string, spec corev1.PodSpec) error {
		spec.ServiceAccountName = "default"
		return client.NewDryRunClient(c).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift", Name: name},
			Spec:       spec,
		})
	}
	// The policy holds soon after its creation. It is tested by what the SCC refuses.
	fixed := LoadJob(test, "checkout-cache-plan", "x", FixedUserIDs).Spec.Template.Spec
	await.Until(t, "a fixed user is refused", func() error {
		err := create("fixed", fixed)
		return await.That(err != nil && strings.Contains(err.Error(), "runAsUser"), "the answer is %v", err)
	})
	for name, change := range map[string]func(*corev1.PodSpec){
		"fsGroup": func(p *corev1.PodSpec) { p.SecurityContext.FSGroup = new(agentUser) },
		"allowPrivilegeEscalation": func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
		},
		"capabilities": func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
		},
		"volumes": func(p *corev1.PodSpec) {
			p.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
	} {
		spec := LoadJob(test, "checkout-cache-plan", "x", AssignedUserIDs).Spec.Template.Spec
		change(&spec)
		if err := create("bad", spec); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}

	if err := create("load", LoadJob(test, "checkout-cache-plan", "x", AssignedUserIDs).Spec.Template.Spec); err != nil {
		t.Errorf("load pods: %v", err)
	}
	manager := &appsv1.Deployment{}
	read(t, "../../config/manager/manager.yaml", manager)
	// the class belongs to the cluster, which other packages' tests share: TestInstallationIsAccepted
	manager.Spec.Template.Spec.PriorityClassName = ""
	if err := create("manager", manager.Spec.Template.Spec); err != nil {
		t.Errorf("the manager: %v", err)
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
