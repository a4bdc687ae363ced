//go:build integration

package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/target/podexec"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/manifests"
)

// The rights of the component volume-faults permit any pod, and any program in all pods: its policies leave the operator
// its own holder pods and its own program. They ask nobody else.
func TestVolumeFaultsCreateTheirPodsOnly(t *testing.T) {
	namespace := newNamespace(t)
	for _, o := range manifests.Installation(t, "default", "network-faults", "volume-faults") {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") && (strings.Contains(o.GetName(), "volume-faults") ||
			strings.Contains(o.GetName(), "network-faults-programs")) {
			created(t, o)
		}
	}
	operator := userWith(t, "RedisFault", namespace, "create pods", "get pods", "create pods/exec", "get pods/exec")
	operator.grantOnCluster(rights.ActForOthers.String())
	ours := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "fill-full-1", Labels: map[string]string{v1alpha1.LabelFault: "fill"},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{
				Name:  "redquake-holder",
				Image: "redquake:test",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{
						Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE"},
					},
				},
			}},
			Volumes: []corev1.Volume{{Name: "held", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-redis-0"},
			}}},
		},
	}
	create := func(by client.Client, change func(*corev1.Pod)) error {
		one := ours.DeepCopy()
		if change != nil {
			change(one)
		}
		return by.Create(t.Context(), one, client.DryRunAll)
	}
	const faults, node, privileges = "for faults of volumes only", "have nothing of their node, and no secrets", "have no privileges"
	await.Until(t, "the policy to be in force", func() error {
		err := create(operator, func(p *corev1.Pod) { p.Labels = nil })
		return await.That(err != nil && strings.Contains(err.Error(), faults), "%v", err)
	})
	if err := create(operator, nil); err != nil {
		t.Errorf("its own: %v", err)
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"another container":    {func(p *corev1.Pod) { p.Spec.Containers[0].Name = "shell" }, faults},
		"a token":              {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }, faults},
		"the node's network":   {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, node},
		"the node's processes": {func(p *corev1.Pod) { p.Spec.HostPID = true }, node},
		"the node's files": {func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}, node},
		"a secret": {func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "redis"}}
		}, node},
		"privileged": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, privileges},
		"another capability": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		}, privileges},
		"a second container": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "root", Image: "x"}}
		}, privileges},
	} {
		if err := create(operator, tc.change); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
		if err := create(strict, tc.change); err != nil {
			t.Errorf("%s, by an administrator: %v", name, err)
		}
	}
	redis := ours.DeepCopy()
	redis.Name, redis.Labels, redis.Spec.Containers[0].Name, redis.Spec.Volumes = "redis-0", nil, "redis", nil
	if err := strict.Create(t.Context(), redis); err != nil {
		t.Fatal(err)
	}
	run := runsAs(t, operator.name, namespace, redis.Name)
	const refused = "the operator runs the programs of its own containers in pods only"
	for name, said := range map[string]string{
		"another container": run("redis", "/redquake", "diskfill", "show"),
		"another program":   run("redquake-holder", "/redquake", "load"),
		"a shell":           run("redquake-holder", "sh"),
	} {
		if !strings.Contains(said, refused) {
			t.Errorf("%s: %s", name, said)
		}
	}
	if said := run("redquake-holder", "/redquake", "diskfill", "show"); strings.Contains(said, refused) ||
		!strings.Contains(said, "redquake-holder") && !strings.Contains(said, "redis-0") {
		t.Errorf("its own program: %s", said)
	}
}

// runsAs returns a function that runs a program in a container of a pod as a user, and returns the error.
func runsAs(t *testing.T, user, namespace, pod string) func(container string, command ...string) string {
	t.Helper()
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	programs, err := podexec.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(container string, command ...string) string {
		_, err := programs.Run(t.Context(), types.NamespacedName{Namespace: namespace, Name: pod}, container, command...)
		return fmt.Sprint(err)
	}
}
