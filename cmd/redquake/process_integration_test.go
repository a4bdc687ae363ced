//go:build integration

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// binary is the built command.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "redquake")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "redquake")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// startRedis starts a real server on loopback, waits until it listens, and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	server := exec.Command("redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, args...)...)
	var out bytes.Buffer
	server.Stdout, server.Stderr = &out, &out
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-exited
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return address
		}
		select {
		case <-exited:
			t.Fatalf("redis-server ended: %s", out.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not listen: %s", out.String())
		}
	}
}

// given are the ports that freeAddress gave away: tests run side by side, and the kernel gives a closed port again.
var given sync.Map

// freeAddress asks the kernel for a port that nobody listens on, never twice for the same.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if _, again := given.LoadOrStore(address, true); !again {
			return address
		}
	}
}

// process is the binary at work.
type process struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// begin starts the binary. env is added to the environment without a password in it.
func begin(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...)}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// code waits for the end and returns the exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// run runs the binary to its end.
func run(t *testing.T, env []string, args ...string) (code int, out, err string) {
	t.Helper()
	p := begin(t, env, args...)
	code = p.code(t)
	return code, p.out.String(), p.err.String()
}
