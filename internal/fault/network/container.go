package network

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/problem"
)

// containers is the begin of the names of our ephemeral containers; a number follows. One serves
// all faults of a pod; another one is added only where it has ended, as it is never started again.
const containers = "redquake-network-"

// program is the path of the program in our image.
const program = "/netfault"

// box is our container in a pod.
type box struct {
	name    string // "" = the pod has none that is alive
	running bool
	why     string // it does not run yet
	ended   int    // how many have ended
}

// find looks for our container in a pod.
func find(pod *corev1.Pod) box {
	var found box
	for i := range pod.Spec.EphemeralContainers {
		name := pod.Spec.EphemeralContainers[i].Name
		if !strings.HasPrefix(name, containers) {
			continue
		}
		state := stateOf(pod, name)
		if state.Terminated != nil {
			found.ended++
			continue
		}
		found.name, found.running = name, state.Running != nil
		if w := state.Waiting; w != nil {
			found.why = strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	return found
}

func stateOf(pod *corev1.Pod, container string) corev1.ContainerState {
	for i := range pod.Status.EphemeralContainerStatuses {
		if s := &pod.Status.EphemeralContainerStatuses[i]; s.Name == container {
			return s.State
		}
	}
	return corev1.ContainerState{}
}

// add adds our container to a pod. With client.DryRunAll it only asks whether that is admitted.
func (n network) add(
	ctx context.Context, pod *corev1.Pod, options ...client.SubResourcePatchOption,
) error {
	// A strategic merge adds it to those that are there, by its name.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"ephemeralContainers": []corev1.EphemeralContainer{n.container(find(pod).ended)},
	}, "metadata": map[string]any{"uid": pod.UID}})
	if err != nil {
		return fmt.Errorf("encode the ephemeral container: %w", err)
	}
	err = n.Cluster.SubResource("ephemeralcontainers").Patch(ctx, pod.DeepCopy(),
		client.RawPatch(types.StrategicMergePatchType, patch), options...)
	switch {
	case problem.Refuses(err):
		return problem.Unsupported(
			"pod %s does not get the container that drops its packets: %s. Namespace %s must admit the "+
				"capability NET_ADMIN (Pod Security: privileged)", pod.Name, problem.Refusal(err), n.Namespace)
	case err != nil:
		return fmt.Errorf("add an ephemeral container to pod %s: %w", pod.Name, err)
	}
	return nil
}

// container has the one right that the program needs, and nothing of the pod but its network. The
// user is that of the pod, else of the image.
func (n network) container(number int) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name:                     fmt.Sprint(containers, number),
			Image:                    n.Image,
			ImagePullPolicy:          corev1.PullIfNotPresent,
			Command:                  []string{program, netfault.VerbSleep},
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext: &corev1.SecurityContext{
				Capabilities: &corev1.Capabilities{
					Drop: []corev1.Capability{"ALL"},
					Add:  []corev1.Capability{"NET_ADMIN"},
				},
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

// enter has our container run in a pod. It is not complete until it does.
func (n network) enter(ctx context.Context, pod *corev1.Pod) (string, contract.Progress, error) {
	switch found := find(pod); {
	case found.running:
		return found.name, contract.Progress{}, nil
	case found.name != "" && strings.HasPrefix(found.why, "ErrImage"), strings.HasPrefix(found.why, "ImagePull"),
		strings.HasPrefix(found.why, "InvalidImage"):
		return "", contract.Progress{}, fmt.Errorf("container %s of pod %s does not start: %s", found.name,
			pod.Name, found.why)
	case found.name != "":
		return "", contract.Preparing("container %s of pod %s starts %s", found.name, pod.Name, found.why), nil
	}
	if err := n.add(ctx, pod); err != nil {
		return "", contract.Progress{}, err
	}
	return "", contract.Preparing("an ephemeral container was added to pod %s", pod.Name), nil
}

// run runs the program in our container, and returns what the kernel does then.
func (n network) run(
	ctx context.Context, pod, container string, arguments ...string,
) (netfault.State, error) {
	output, err := n.Programs.Run(ctx, types.NamespacedName{Namespace: n.Namespace, Name: pod}, container,
		append([]string{program}, arguments...)...)
	if err != nil {
		return netfault.State{}, err
	}
	return netfault.ParseState(output)
}
