package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/testing/installed"
)

// RunRedis runs redis-server with further arguments, of which the first may be a configuration
// file, and returns when it replies to PING. stop ends it and returns when the process has ended;
// exited is closed then.
func RunRedis(
	ctx context.Context, dir, ip string, port int, arguments ...string,
) (stop func(), exited <-chan struct{}, err error) {
	var file []string
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "--") {
		file, arguments = arguments[:1], arguments[1:]
	}
	server, err := installed.Find("redis-server")
	if err != nil {
		return nil, nil, err
	}
	command := exec.Command(server, slices.Concat(file, []string{
		"--port", strconv.Itoa(port), "--bind", ip, "--save", "", "--dir", dir, "--loglevel", "warning",
		"--repl-diskless-sync-delay", "0",
	}, arguments)...)
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	stop = func() {
		_ = command.Process.Kill()
		<-ended
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	address := net.JoinHostPort(ip, strconv.Itoa(port))
	for !answers(address) {
		select {
		case <-ended:
			return nil, nil, fmt.Errorf("redis-server at %s has ended: %s", address, command.ProcessState)
		case <-ctx.Done():
			stop()
			return nil, nil, errors.Join(fmt.Errorf("redis-server at %s does not respond", address),
				ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return stop, ended, nil
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
