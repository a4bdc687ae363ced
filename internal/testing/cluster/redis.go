package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/testing/installed"
)

// Redis is a redis-server that runs, or has ended.
type Redis struct {
	Exited  <-chan struct{} // closed when it has ended
	command *exec.Cmd
	limited bool // its memory is
}

// Stop ends the server, and returns when it has ended.
func (r *Redis) Stop() {
	_ = r.command.Process.Kill()
	<-r.Exited
}

// IsOutOfMemory reports whether a server whose memory is limited has ended by itself other than by SHUTDOWN: malloc
// fails, which aborts it, by whatever signal its report of that comes to.
func (r *Redis) IsOutOfMemory() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.Exited:
		status, is := r.command.ProcessState.Sys().(syscall.WaitStatus)
		killed := is && status.Signaled() && status.Signal() == syscall.SIGKILL
		return r.limited && !killed && !r.command.ProcessState.Success()
	default:
		return false
	}
}

// RunRedis runs redis-server with further arguments, of which the first may be a configuration file, and returns when it
// replies to PING. Once it replies, it may take as many bytes of memory more, as a kubelet limits a container; 0 = any.
func RunRedis(
	ctx context.Context, dir, ip string, port int, memory int64, arguments ...string,
) (*Redis, error) {
	var file []string
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "--") {
		file, arguments = arguments[:1], arguments[1:]
	}
	server, err := installed.Find("redis-server")
	if err != nil {
		return nil, err
	}
	command := exec.Command(server, slices.Concat(file, []string{
		"--port", strconv.Itoa(port), "--bind", ip, "--save", "", "--dir", dir, "--loglevel", "warning",
		"--repl-diskless-sync-delay", "0",
	}, arguments)...)
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	r := &Redis{Exited: ended, command: command, limited: memory > 0}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	address := net.JoinHostPort(ip, strconv.Itoa(port))
	for !answers(address) {
		select {
		case <-ended:
			return nil, fmt.Errorf("redis-server at %s has ended: %s", address, command.ProcessState)
		case <-ctx.Done():
			r.Stop()
			return nil, errors.Join(fmt.Errorf("redis-server at %s does not respond", address), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if memory > 0 {
		if err := limitMemory(command.Process.Pid, memory); err != nil {
			r.Stop()
			return nil, err
		}
	}
	return r, nil
}

// limitMemory lets a process have as many bytes of addresses more than it has.
func limitMemory(pid int, more int64) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + uint64(more)
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}, nil)
}

// answers reports whether a server replies to PING or refuses it without a password.
func answers(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprint(c, "PING\r\n"); err != nil {
		return false
	}
	reply, _ := bufio.NewReader(c).ReadString('\n')
	return strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NOAUTH")
}
