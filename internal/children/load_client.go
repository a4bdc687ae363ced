package children

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/version"
)

// ClientContainer is the name of the sidecar in which a client library runs.
const ClientContainer = "client"

// Names of the volumes of that sidecar, and the socket by which the agent speaks with it.
const (
	clientVolume = "client"
	clientSocket = "client.sock"
	clientTmp    = "client-tmp"
)

// addClient adds the sidecar with the library that the test's driver is, unless the agent itself
// has it. image is the operator's own. The sidecar starts before the agent and ends after it.
func addClient(pod *corev1.PodSpec, client *v1alpha1.LoadClient, image string) {
	language := plan.Driver(client.Driver).Language()
	if language == "" || language == plan.Go {
		return
	}
	own := client.Image
	if own == "" {
		own = clientImage(image, language)
	}
	shared := corev1.VolumeMount{Name: clientVolume, MountPath: clientDir}
	pod.Volumes = append(pod.Volumes, emptyDir(clientVolume), emptyDir(clientTmp))
	agent := &pod.Containers[0]
	agent.VolumeMounts = append(agent.VolumeMounts, shared)
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name:          ClientContainer,
		Image:         own,
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Command:       []string{"/adapters/" + string(client.Driver), path.Join(clientDir, clientSocket)},
		Resources:     clientResources(),
		VolumeMounts:  []corev1.VolumeMount{shared, {Name: clientTmp, MountPath: "/tmp"}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	})
}

// clientResources leave a runtime such as the JVM, which takes a quarter of its limit for its heap,
// enough for the requests that are in flight.
func clientResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("128Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{
		Name:         name,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}
}

// clientImage is the image of the adapters of a language, which is beside the operator's: of
// REPOSITORY:TAG it is REPOSITORY-client-LANGUAGE:TAG. An image that only a digest names has the tag
// of this version.
func clientImage(image string, language plan.Language) string {
	name, _, _ := strings.Cut(image, "@")
	repository, tag := name, version.Version
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		repository, tag = name[:colon], name[colon+1:]
	}
	return repository + "-client-" + string(language) + ":" + tag
}
