package network

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	name    string // of one that runs, of the present image if there is one; "" = none does
	starts  string // of one of the present image that does not run yet; "" = there is none
	why     string // it does not
	present bool   // name is of the present image
	all     int    // how many there are, those that have ended among them
}

// find looks for our container in a pod.
func (n network) find(pod *corev1.Pod) box {
	var found box
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		if !strings.HasPrefix(c.Name, containers) {
			continue
		}
		found.all++
		state, present := stateOf(pod, c.Name), c.Image == n.Image
		switch {
		case state.Terminated != nil:
		case state.Running != nil && (present || found.name == ""):
			found.name, found.present = c.Name, present
		case state.Running == nil && present:
			found.starts = c.Name
			if w := state.Waiting; w != nil {
				found.why = strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
			}
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
		"ephemeralContainers": []corev1.EphemeralContainer{n.container(n.find(pod).all)},
	}, "metadata": map[string]any{"uid": pod.UID}})
	if err != nil {
		return fmt.Errorf("encode the ephemeral container: %w", err)
	}
	err = n.Cluster.SubResource("ephemeralcontainers").Patch(ctx, pod.DeepCopy(),
		client.RawPatch(types.StrategicMergePatchType, patch), options...)
	switch {
	case problem.Refuses(err) && strings.Contains(err.Error(), "PodSecurity"):
		return problem.Unsupported(
			"pod %s does not get the container that drops its packets: %s. Namespace %s must admit the "+
				"capability NET_ADMIN (Pod Security: privileged)", pod.Name, problem.Refusal(err), n.Namespace)
	case problem.Refuses(err):
		return problem.Unsupported("pod %s does not get the container that drops its packets: %s", pod.Name,
			problem.Refusal(err))
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

// failing are the reasons of a container that waits for somebody to correct something.
var failing = []string{
	"ErrImage", "ImagePull", "InvalidImage", "CreateContainer", "RunContainer", "CrashLoop",
}

// enter has our container run in a pod. It is not complete until it does.
func (n network) enter(
	ctx context.Context, pod *corev1.Pod,
) (container string, progress contract.Progress, err error) {
	found := n.find(pod)
	switch {
	case found.present:
		return found.name, progress, nil
	case found.starts == "":
		if err := n.add(ctx, pod); err != nil {
			return "", progress, err
		}
		return "", contract.Preparing("an ephemeral container was added to pod %s", pod.Name), nil
	case slices.ContainsFunc(failing, func(reason string) bool {
		return strings.HasPrefix(found.why, reason)
	}):
		return "", progress, fmt.Errorf("container %s of pod %s does not start: %s", found.starts, pod.Name,
			found.why)
	}
	return "", contract.Preparing("container %s of pod %s starts %s", found.starts, pod.Name, found.why),
		nil
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
