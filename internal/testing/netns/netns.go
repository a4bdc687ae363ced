//go:build linux

// Package netns gives a test network namespaces of its own, so that what it does to a network
// concerns nothing else on the machine. It needs root, and the programs ip and nsenter.
package netns

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// marker is set in the process that has a namespace of its own.
const marker = "REDQUAKE_OWN_NETWORK"

// Own runs the test again, in a process whose network is its own, and returns whether it is that
// process: a test goes on only if it is. Without root it is skipped.
func Own(t *testing.T) bool {
	t.Helper()
	if os.Getenv(marker) != "" {
		command(t, exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up"))
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.timeout=10m")
	again.Env = append(os.Environ(), marker+"=yes")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	output, err := again.CombinedOutput()
	t.Logf("in a network of its own:\n%s", output)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// Host is a network namespace that is connected with that of the test.
type Host struct {
	pid string
	// of the host, and of the test as the host sees it
	Address, Address6 netip.Addr
	Peer, Peer6       netip.Addr
	// further addresses of the test; the last one is the gateway of the host
	Other, Gateway netip.Addr
}

// NewHost makes a host, the n-th of the test, which ends with the test.
func NewHost(t *testing.T, n int) *Host {
	t.Helper()
	idle := exec.CommandContext(t.Context(), "sleep", "infinity")
	idle.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := idle.Start(); err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = idle.Process.Kill()
		_ = idle.Wait() // it was killed
	})
	at := func(last int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("198.18.%d.%d", n, last)) }
	at6 := func(last int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd18:%d::%d", n, last)) }
	h := &Host{
		pid:      strconv.Itoa(idle.Process.Pid),
		Address:  at(2),
		Address6: at6(2),
		Peer:     at(1),
		Peer6:    at6(1),
		Other:    at(3),
		Gateway:  at(4),
	}
	device := fmt.Sprint("host", n)
	ip := func(arguments ...string) {
		t.Helper()
		command(t, exec.CommandContext(t.Context(), "ip", arguments...))
	}
	inside := func(arguments ...string) {
		t.Helper()
		command(t, h.Command(t.Context(), "ip", arguments...))
	}
	ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", h.pid)
	ip("address", "add", h.Peer.String()+"/24", "dev", device)
	ip("address", "add", h.Other.String()+"/24", "dev", device)
	ip("address", "add", h.Gateway.String()+"/24", "dev", device)
	ip("address", "add", h.Peer6.String()+"/64", "dev", device, "nodad")
	ip("link", "set", device, "up")
	inside("address", "add", h.Address.String()+"/24", "dev", "eth0")
	inside("address", "add", h.Address6.String()+"/64", "dev", "eth0", "nodad")
	inside("link", "set", "lo", "up")
	inside("link", "set", "eth0", "up")
	inside("route", "add", "default", "via", h.Gateway.String())
	return h
}

// Command is a command in the namespace of the host.
func (h *Host) Command(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter",
		append([]string{"--target", h.pid, "--net", "--", name}, arguments...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func command(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, output)
	}
}
