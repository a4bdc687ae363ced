package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/process"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// start runs a daemon in the lab's network namespace unless it runs, and records it.
func (l *Lab) start(d config.Daemon) error {
	if l.alive(d.Name) {
		return nil
	}
	out, err := os.OpenFile(l.State.Log(d.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(l.State.Bin(), d.Program), d.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	cmd.Env = []string{"PATH=" + l.State.Bin() + ":" + settings.SystemPath, "HOME=/root"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := netns.Do(settings.NetNS, cmd.Start); err != nil {
		return fmt.Errorf("starting %s: %w", d.Name, err)
	}
	go cmd.Wait() // so that no zombie remains if it ends while this command runs
	id, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		return l.ended(d.Name)
	}
	return id.Save(l.State.Record(d.Name))
}

// checkDaemons returns an error if one of the daemons that have been started has ended.
func (l *Lab) checkDaemons(started []config.Daemon) error {
	for _, d := range started {
		if !l.alive(d.Name) {
			return l.ended(d.Name)
		}
	}
	return nil
}

// alive reports whether the daemon runs, as it was recorded.
func (l *Lab) alive(name string) bool {
	_, err := process.Load(l.State.Record(name), settings.CgroupRoot)
	return err == nil
}

// ended is the error that a daemon is not running, with the end of its log.
func (l *Lab) ended(name string) error {
	path := l.State.Log(name)
	data, _ := os.ReadFile(path)
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	if n := 5; len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return fmt.Errorf("%s has ended; the end of %s:\n  %s", name, path, strings.Join(lines, "\n  "))
}

// killStrays ends processes that a killed `lab up` started and did not record. They are the
// processes in the lab's cgroup that are neither recorded nor part of a recorded node.
func (l *Lab) killStrays() error {
	known := map[int]bool{os.Getpid(): true}
	nodes := map[string]bool{}
	for _, d := range l.daemons() {
		if id, err := process.Load(l.State.Record(d.Name), settings.CgroupRoot); err == nil {
			known[id.PID] = true
		}
	}
	for _, n := range l.nodes() {
		if id, err := n.Init(); err == nil {
			nodes[pidNamespace(id.PID)] = true
		}
	}
	for _, pid := range l.Cgroups.Processes(settings.DaemonsCgroup) {
		if known[pid] || nodes[pidNamespace(pid)] {
			continue
		}
		id, err := process.Identify(pid)
		if err != nil || !id.InCgroup(settings.DaemonsCgroup) {
			continue
		}
		fmt.Fprintf(l.Progress, "ending process %d, left by an interrupted command\n", pid)
		if err := id.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, process.ErrGone) {
			return err
		}
	}
	return nil
}

// daemons are those of the control plane.
func (l *Lab) daemons() []config.Daemon {
	return append(config.Store(l.State), config.Control(l.State)...)
}

// pidNamespace names the PID namespace of a process.
func pidNamespace(pid int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return name
}
