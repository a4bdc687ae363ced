//go:build integration

package load

import (
	"bytes"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/resp"
)

// redisProcess is a real redis-server of a test on loopback.
type redisProcess struct {
	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
	out  bytes.Buffer
}

// freePort asks the kernel for a port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// startRedis starts a server with further arguments and waits until it accepts connections.
func startRedis(t testing.TB, args ...string) *redisProcess {
	t.Helper()
	r := &redisProcess{t: t, port: freePort(t), args: append([]string{"--dir", t.TempDir()}, args...)}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisProcess) address() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

// launch starts the process without waiting for it.
func (r *redisProcess) launch() {
	r.t.Helper()
	args := []string{"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
	r.cmd = exec.Command("redis-server", append(args, r.args...)...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redisProcess) start() {
	r.t.Helper()
	r.launch()
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := net.Dial("tcp", r.address())
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			r.kill()
			r.t.Fatalf("redis-server does not listen: %s", r.out.String())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *redisProcess) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redisProcess) kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.cmd = nil
}

// do sends one command on a connection of its own.
func (r *redisProcess) do(words ...string) resp.Value {
	r.t.Helper()
	c, err := net.Dial("tcp", r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	v, err := ask(c, 5*time.Second, resp.AppendCommand(nil, words...))
	if err != nil {
		r.t.Fatalf("%v: %v", words, err)
	}
	return v
}

// blackHole is a listener whose backlog is full: the kernel drops further SYNs, as the address of a dead pod does.
func blackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the backlog does not fill up")
	return ""
}
