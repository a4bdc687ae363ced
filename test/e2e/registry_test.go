//go:build e2e

package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

const (
	labProgram = "../../hack/lab/lab"
	archives   = "../../build/image/" // of the images that `make load-test-images` builds
	// No node has these names from the start, and there is no such host.
	foreignRegistry = "registry.example.com/e2e/"
)

// onLab reports whether the cluster is the lab, the only one whose registry tests may write to.
func onLab() bool { return os.Getenv("CLUSTER") == "" || os.Getenv("CLUSTER") == "lab" }

func TestRegistry(t *testing.T) {
	t.Parallel()
	n := registry(t)
	n.applyRedis(nil)
	loadPodsOfRegistry(n)
}

// registry has kubelets pull from the lab's registry, which the nodes mirror: a tag that moves, and an image that does
// not exist.
func registry(t *testing.T) *namespace {
	n := newNamespace(t, "registry")
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{
			corev1.DockerConfigJsonKey: `{"auths":{"registry.example.com":{"username":"e2e","password":"unused"}}}`,
		},
	})
	n.inParallel(map[string]func(*namespace){"moved-tag": movedTag, "missing": missingImage})
	return n
}

// push puts the only image of an archive into the lab's registry, but onto no node.
func (n *namespace) push(archive, name string) {
	n.Helper()
	if out, err := exec.CommandContext(n.Context(), labProgram, "push", "--as", name,
		archives+archive).CombinedOutput(); err != nil {
		n.Fatalf("push %s as %s: %v\n%s", archive, name, err, out)
	}
}

// movedTag runs the image to which a tag leads, twice.
func movedTag(n *namespace) {
	const image = foreignRegistry + "server:moves"
	for _, server := range []string{"redis-8", "valkey-9"} {
		n.push(server+".tar", image)
		pod := onePod("shows-"+server, image)
		pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		pod.Spec.Containers[0].Command = []string{"sh", "-c", "cd /usr/bin && ls *-server"}
		n.create(pod)
		n.watched(patience, pod.Name+" has ended", &corev1.PodList{}, pod.Name, func() (bool, string) {
			n.get(pod.Name, pod)
			return pod.Status.Phase == corev1.PodSucceeded, asJSON(n.T, pod.Status)
		})
		log, err := cluster.clientset.CoreV1().Pods(n.name).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(n.Context())
		if got := strings.TrimSpace(string(log)); err != nil || got != strings.TrimRight(server, "-89")+"-server" {
			n.Errorf("%s runs an image with %q (%v), want that of %s", image, got, err, server)
		}
		n.event(pod.Name, "Pulled", "Successfully pulled image")
	}
}

// missingImage must not wait for a network that there is not.
func missingImage(n *namespace) {
	pod := onePod("missing", foreignRegistry+"missing:1")
	n.create(pod)
	n.watched(patience, "the image is not found", &corev1.PodList{}, pod.Name, func() (bool, string) {
		n.get(pod.Name, pod)
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil && (w.Reason == "ErrImagePull" || w.Reason == "ImagePullBackOff") {
				return true, ""
			}
		}
		return false, asJSON(n.T, pod.Status)
	})
	n.event(pod.Name, "Failed", "registry.example.com/e2e/missing:1: not found")
}

// loadPodsOfRegistry loads with the operator's image under another name. Its tag is latest, so Kubernetes' default is
// to pull it for each pod.
func loadPodsOfRegistry(n *namespace) {
	const image = foreignRegistry + "redquake:latest"
	n.push("redquake.tar", image)
	test := n.smallLoad("pulled", 3*time.Second)
	test.Spec.Pods.Image, test.Spec.Pods.ImagePullSecrets = image, []v1alpha1.SecretReference{{Name: "registry"}}
	n.create(test)
	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSucceeded)
	pods := n.loadPods(test.Name)
	if len(pods) != 1 {
		n.Fatalf("%d load pods, want one", len(pods))
	}
	if c := pods[0].Spec.Containers[0]; c.Image != image || c.ImagePullPolicy != corev1.PullAlways ||
		len(pods[0].Spec.ImagePullSecrets) != 1 {
		n.Errorf("image %s, policy %s, secrets %v; want %s, Always and one", c.Image, c.ImagePullPolicy,
			pods[0].Spec.ImagePullSecrets, image)
	}
	n.event(pods[0].Name, "Pulled", "Successfully pulled image")
}

// event waits for an event of a pod with a text.
func (n *namespace) event(pod, reason, text string) {
	n.Helper()
	n.eventually(patience, reason+" of "+pod, func() (bool, string) {
		var events corev1.EventList
		n.list(&events)
		seen := ""
		for _, e := range events.Items {
			if e.InvolvedObject.Name != pod {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return true, ""
			}
			seen += e.Reason + ": " + e.Message + "\n"
		}
		return false, seen
	})
}

// onePod is a pod under the restricted standard that ends by itself.
func onePod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      new(int64(999)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "only", Image: image,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
