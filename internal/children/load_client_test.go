package children

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/version"
)

// Each library that is not in Go has a sidecar, which shares a socket with the agent and starts before it.
func TestClientSidecar(t *testing.T) {
	for _, driver := range plan.Drivers() {
		test := loadTest(t, fmt.Sprintf(`
target: {addresses: ["a:1"]}
client: {driver: %s}
load: {users: 10, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
`, driver))
		pod := LoadJob(test, "plan", "registry:5000/redquake:v1", FixedUserIDs).Spec.Template.Spec
		language := driver.Language()
		if language == "" || language == plan.Go {
			if len(pod.InitContainers) > 0 {
				t.Errorf("%s: %+v", driver, pod.InitContainers)
			}
			continue
		}
		made, err := Plan(test, addresses)
		if err != nil {
			t.Fatal(err)
		}
		c := pod.InitContainers[0]
		want := "registry:5000/redquake-client-" + string(language) + ":v1"
		if c.Image != want || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways ||
			!slices.Equal(c.Command, []string{"/adapters/" + string(driver), made.Client.Adapter.Socket}) {
			t.Errorf("%s: %s %v", driver, c.Image, c.Command)
		}
		for _, container := range []corev1.Container{c, pod.Containers[0]} {
			if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return !m.ReadOnly && strings.HasPrefix(made.Client.Adapter.Socket, m.MountPath+"/")
			}) {
				t.Errorf("%s: %s cannot use the socket: %v", driver, container.Name, container.VolumeMounts)
			}
			for _, m := range container.VolumeMounts {
				if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s: there is no volume %s", driver, m.Name)
				}
			}
		}
	}
}

func TestClientImages(t *testing.T) {
	for image, want := range map[string]string{
		"redquake:v1":                          "redquake-client-java:v1",
		"registry:5000/a/redquake":             "registry:5000/a/redquake-client-java:" + version.Version,
		"registry/redquake:v1@sha256:0123":     "registry/redquake-client-java:v1",
		"registry:5000/redquake@sha256:012345": "registry:5000/redquake-client-java:" + version.Version,
	} {
		if got := clientImage(image, plan.Java); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
	test := loadTest(t, `
target: {addresses: ["a:1"]}
client: {driver: Jedis, image: own}
load: {users: 10, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
pods: {image: other}
`)
	pod := LoadJob(test, "plan", "redquake:v1", AssignedUserIDs).Spec.Template.Spec
	if pod.InitContainers[0].Image != "own" || pod.Containers[0].Image != "other" {
		t.Errorf("%+v", pod)
	}
}
