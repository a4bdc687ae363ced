package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/process"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// FreezePod freezes or resumes every process of a pod: its connections stay open and nothing responds, as with a machine
// that hangs. SIGSTOP does not work: the kernel ignores it for PID 1 of a container.
func (l *Lab) FreezePod(ctx context.Context, namespace, name string, frozen bool) error {
	group, err := l.podGroup(ctx, namespace, name)
	if err != nil {
		return err
	}
	return l.Cgroups.Freeze(group, frozen)
}

// KillPod sends SIGKILL to the processes of a pod's containers. Its sandbox stays: the kubelet starts the containers again, in the same pod.
func (l *Lab) KillPod(ctx context.Context, namespace, name string) error {
	group, err := l.podGroup(ctx, namespace, name)
	if err != nil {
		return err
	}
	killed := 0
	for _, pid := range l.Cgroups.ProcessesIn(group) {
		id, err := process.Identify(pid)
		program, unreadable := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || unreadable != nil || filepath.Base(program) == "pause" {
			continue
		}
		switch err := id.Signal(syscall.SIGKILL); {
		case err == nil:
			killed++
		case !errors.Is(err, process.ErrGone):
			return err
		}
	}
	if killed == 0 {
		return fmt.Errorf("no process of a container of pod %s/%s is running", namespace, name)
	}
	return nil
}

func (l *Lab) podGroup(ctx context.Context, namespace, name string) (string, error) {
	client, err := l.client()
	if err != nil {
		return "", err
	}
	pod, err := client.Pod(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	if pod.Spec.NodeName == "" {
		return "", fmt.Errorf("pod %s/%s is on no node yet", namespace, name)
	}
	group, err := l.Cgroups.PodGroup(config.NodeCgroup(pod.Spec.NodeName), pod.Metadata.UID)
	if err != nil {
		return "", fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return group, nil
}

// PauseDaemon stops a daemon of the control plane as it is, or lets it go on: it holds its connections and answers nothing.
func (l *Lab) PauseDaemon(name string, paused bool) error {
	var known []string
	for _, d := range l.daemons() {
		known = append(known, d.Name)
		if d.Name != name {
			continue
		}
		id, err := process.Load(l.State.Record(name), settings.CgroupRoot)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if paused {
			return id.Signal(syscall.SIGSTOP)
		}
		return id.Signal(syscall.SIGCONT)
	}
	return fmt.Errorf("no daemon of the control plane is called %q; there are %s", name, strings.Join(known, ", "))
}
