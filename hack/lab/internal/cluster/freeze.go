package cluster

import (
	"context"
	"fmt"

	"github.com/redquake/redquake/hack/lab/internal/config"
)

// FreezePod freezes or resumes every process of a pod: its connections stay open and nothing responds, as with a machine
// that hangs. SIGSTOP does not work: the kernel ignores it for PID 1 of a container.
func (l *Lab) FreezePod(ctx context.Context, namespace, name string, frozen bool) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	pod, err := client.Pod(ctx, namespace, name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("pod %s/%s is on no node yet", namespace, name)
	}
	group, err := l.Cgroups.PodGroup(config.NodeCgroup(pod.Spec.NodeName), pod.Metadata.UID)
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return l.Cgroups.Freeze(group, frozen)
}
