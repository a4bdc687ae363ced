package node

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/cgroup"
	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/files"
	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/process"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Host is a node as the host sees it.
type Host struct {
	State   settings.State
	Node    settings.Node
	Cgroups cgroup.Hierarchies
}

// Start switches the node on and waits until its containerd answers. The caller has joined the
// lab's cgroup.
func (h Host) Start(reservedMemory string) error {
	configuration := config.NodeFiles(h.State, h.Node, reservedMemory)
	if _, err := h.Init(); err == nil {
		if err := h.runsWith(configuration); err != nil {
			return err
		}
		return h.waitForContainerd()
	}
	if err := h.Cgroups.Create(config.NodeCgroup(h.Node.Name)); err != nil {
		return err
	}
	for path, content := range configuration {
		if err := files.WriteAtomic(path, content, 0o644); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(h.State.Log("init-"+h.Node.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	os.Remove(h.State.ContainerdSocket(h.Node.Name)) // of a node that was powered off
	cmd := exec.Command(self, InitVerb, h.Node.Name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	cmd.Env = []string{"PATH=" + settings.SystemPath, "HOME=/root", "REDQUAKE_LAB_DIR=" + h.State.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
	}
	if err := netns.Do(settings.NetNS, cmd.Start); err != nil {
		return fmt.Errorf("starting %s: %w", h.Node.Name, err)
	}
	go cmd.Wait() // so that it leaves no zombie if it ends while this command runs
	id, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s ended at once; see %s", h.Node.Name, h.State.Log("init-"+h.Node.Name))
	}
	if err := id.Save(h.State.Record(h.Node.Name)); err != nil {
		return err
	}
	return h.waitForContainerd()
}

// runsWith returns an error if the node was started with other files, by another version of the
// lab: its daemons read them at their start.
func (h Host) runsWith(configuration map[string][]byte) error {
	for path, content := range configuration {
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, content) {
			return fmt.Errorf(
				"%s was started by another version of the lab, with another %s; take the lab down first: hack/lab/lab down",
				h.Node.Name, path)
		}
	}
	return nil
}

func (h Host) waitForContainerd() error {
	socket := h.State.ContainerdSocket(h.Node.Name)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(
		deadline); time.Sleep(30 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return nil
		}
		if _, err := h.Init(); err != nil {
			return fmt.Errorf("%s went off while it was starting; see %s", h.Node.Name,
				h.State.Log("init-"+h.Node.Name))
		}
	}
	return fmt.Errorf("containerd of %s does not answer after 30 s; see %s", h.Node.Name,
		h.State.Log("containerd-"+h.Node.Name))
}

// Crash cuts the node's power. A node that is off stays off.
func (h Host) Crash() error {
	group := config.NodeCgroup(h.Node.Name)
	id, err := h.Init()
	if err == nil {
		if err := id.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, process.ErrGone) {
			return err
		}
		for deadline := time.Now().Add(20 * time.Second); id.Alive(); time.Sleep(10 * time.Millisecond) {
			h.Cgroups.Thaw(group) // PID 1 ends after all others, and a frozen pod does not end
			if time.Now().After(deadline) {
				return fmt.Errorf("%s (process %d) does not end within 20 s", h.Node.Name, id.PID)
			}
		}
	}
	if err := os.Remove(h.State.Record(h.Node.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := h.Cgroups.Kill(group); err != nil { // nothing is left, normally
		return err
	}
	return h.Cgroups.Remove(group)
}

// Order gives the node's PID 1 one of the orders Hold, Release, Pause, Resume for a daemon.
func (h Host) Order(order, daemon string) error {
	if _, err := h.Init(); err != nil {
		return fmt.Errorf("%s is off; switch it on with: hack/lab/lab node start %s", h.Node.Name,
			h.Node.Name)
	}
	if _, err := send(h.State.NodeSocket(h.Node.Name), order, daemon); err != nil {
		return fmt.Errorf("%s: %s %s: %w", h.Node.Name, order, daemon, err)
	}
	return nil
}

// Daemons returns the state of each of the node's daemons: running, paused, held or down.
func (h Host) Daemons() (map[string]string, error) {
	if _, err := h.Init(); err != nil {
		return nil, err
	}
	lines, err := send(h.State.NodeSocket(h.Node.Name), Status)
	if err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, line := range lines {
		if name, state, ok := strings.Cut(line, " "); ok {
			states[name] = state
		}
	}
	return states, nil
}

// Enter is the command line that runs argv inside the node.
func (h Host) Enter(argv []string) ([]string, error) {
	id, err := h.Init()
	if err != nil {
		return nil, fmt.Errorf("%s is off; switch it on with: hack/lab/lab node start %s", h.Node.Name,
			h.Node.Name)
	}
	return append([]string{
		"nsenter", fmt.Sprintf("--target=%d", id.PID), "--mount", "--pid", "--net",
		"--",
	}, argv...), nil
}

// Init returns the node's PID 1, or process.ErrGone if the node is off.
func (h Host) Init() (process.Identity, error) {
	return process.Load(h.State.Record(h.Node.Name), settings.CgroupRoot)
}
