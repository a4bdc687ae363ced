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

// Pod is the processes of a running pod. They are found once: what is done to them is undone
// without the API server.
type Pod struct {
	lab   *Lab
	group string
	name  string
}

// Pod returns the processes of a pod.
func (l *Lab) Pod(ctx context.Context, namespace, name string) (Pod, error) {
	client, err := l.client()
	if err != nil {
		return Pod{}, err
	}
	pod, err := client.Pod(ctx, namespace, name)
	if err != nil {
		return Pod{}, err
	}
	if pod.Spec.NodeName == "" {
		return Pod{}, fmt.Errorf("pod %s/%s is on no node yet", namespace, name)
	}
	group, err := l.Cgroups.PodGroup(config.NodeCgroup(pod.Spec.NodeName), pod.Metadata.UID)
	if err != nil {
		return Pod{}, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return Pod{l, group, namespace + "/" + name}, nil
}

// Freeze freezes or resumes every process of a pod: its connections stay open and nothing responds,
// as with a machine that hangs. SIGSTOP from inside does not work: the kernel ignores it for PID 1
// of a container.
func (p Pod) Freeze(frozen bool) error {
	return p.lab.Cgroups.Freeze(p.group, frozen)
}

// Kill sends SIGKILL to the processes of its containers. Its sandbox stays: the kubelet starts the
// containers again, in the same pod.
func (p Pod) Kill() error {
	killed := 0
	for _, pid := range p.lab.Cgroups.ProcessesIn(p.group) {
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
		return fmt.Errorf("no process of a container of pod %s is running", p.name)
	}
	return nil
}

// PauseDaemon stops a daemon of the control plane as it is, or lets it go on: it holds its
// connections and answers nothing.
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
	return fmt.Errorf("no daemon of the control plane is called %q; there are %s", name,
		strings.Join(known, ", "))
}
