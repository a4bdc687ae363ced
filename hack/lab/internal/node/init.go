// Package node implements the lab's nodes. A node is one process in its own PID and mount
// namespace, PID 1 of everything that runs on it: killing that process is a power cut, which ends
// containers, mounts and addresses at once, without a shutdown.
package node

import (
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// InitVerb is the hidden subcommand by which the control program becomes a node's PID 1.
const InitVerb = "node-init"

// Init is a node's PID 1. It returns only if the node cannot be set up.
func Init(state settings.State, name string) error {
	n, err := settings.NodeByName(name)
	if err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return errors.New("node-init is started by `lab up` in its own namespaces; do not call it")
	}
	if err := mountPrivate(state, n); err != nil {
		return err
	}
	socket := state.NodeSocket(name)
	os.Remove(socket) // of a node that was powered off
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	r := newReaper()
	daemons := supervise(state, n, r)
	for _, d := range daemons {
		go d.run()
	}
	go serve(listener, daemons)
	log.Printf("node %s is up", name)
	r.run()
	return nil
}

// supervise lists the node's daemons. Kubelet waits for containerd: without it, it would end and
// cost a second.
func supervise(state settings.State, n settings.Node, r *reaper) []*supervised {
	always := func() bool { return true }
	containerdListens := func() bool {
		_, err := os.Stat("/run/containerd/containerd.sock")
		return err == nil
	}
	var all []*supervised
	for _, d := range config.OnNode(state, n) {
		s := &supervised{
			name:    d.Name,
			argv:    append([]string{filepath.Join(state.Bin(), d.Program)}, d.Args...),
			env:     []string{"PATH=" + state.Bin() + ":" + settings.SystemPath, "HOME=/root"},
			logFile: state.Log(d.Name + "-" + n.Name),
			ready:   always,
			reaper:  r,
		}
		if d.Name == config.Kubelet {
			s.ready = containerdListens
		}
		all = append(all, s)
	}
	return all
}

// mountPrivate gives the node its own /proc and its own copies of settings.PrivateDirs. Mounts go
// neither out to the host nor in from it, but between the node and its pods, as kubelet and CSI
// drivers need.
func mountPrivate(state settings.State, n settings.Node) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("leaving the host's mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the node's mounts: %w", err)
	}
	if err := os.RemoveAll(state.NodeFS(n.Name, "/run")); err != nil { // as a boot does
		return err
	}
	for _, dir := range settings.PrivateDirs {
		own := state.NodeFS(n.Name, dir)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(own, dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting the node's %s: %w", dir, err)
		}
		// Out of the group that the bind mount shares with its source, else every volume would be mounted
		// there too.
		for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
			if err := unix.Mount("", dir, "", propagation, ""); err != nil {
				return fmt.Errorf("separating the node's %s: %w", dir, err)
			}
		}
	}
	return nil
}
