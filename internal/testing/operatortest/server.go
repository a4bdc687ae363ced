//go:build integration

package operatortest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// StartRedis starts a StatefulSet of one pod with a real server.
func StartRedis(p *Place, options ...string) *RedisSet {
	s := &RedisSet{
		Place:   p,
		ip:      p.Subnet + "2",
		DownFor: 400 * time.Millisecond,
	}
	program := redistest.ServerProgram(p.T)
	s.launch = func() redisProcess {
		server := &redisServer{
			exec.Command(program,
				append([]string{
					"--port", "6379", "--bind", s.ip, "--save", "", "--dir", p.T.TempDir(),
					"--loglevel", "warning",
				},
					options...)...),
			make(chan struct{}),
		}
		if err := server.command.Start(); err != nil {
			p.T.Errorf("%s: %v", program, err)
			return nil
		}
		go func() {
			_ = server.command.Wait()
			close(server.exited)
		}()
		firstAnswer(p.T, s.Address())
		return server
	}
	s.Setting = func(name, password string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c := goredis.NewClient(&goredis.Options{
			Addr:                  s.Address(),
			Password:              password,
			MaxRetries:            -1,
			DisableIdentity:       true,
			ContextTimeoutEnabled: true,
		})
		defer c.Close()
		settings, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return err.Error()
		}
		return settings[name]
	}
	s.start()
	return s
}

// redisServer is a redis-server process.
type redisServer struct {
	command *exec.Cmd
	exited  chan struct{}
}

func (s *redisServer) Kill() {
	_ = s.command.Process.Kill()
}

func (s *redisServer) Stop() {
	_ = s.command.Process.Signal(syscall.SIGSTOP)
}

func (s *redisServer) Exited() <-chan struct{} {
	return s.exited
}

// firstAnswer waits for the first reply to PING, which may be an authentication error.
func firstAnswer(t *testing.T, address string) time.Time {
	err := await.Try(context.Background(), await.Limit, func() error {
		c, err := net.DialTimeout("tcp", address, await.Limit)
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Fprint(c, "PING\r\n")
		reply, err := bufio.NewReader(c).ReadString('\n')
		if strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-NOAUTH") {
			return nil
		}
		return fmt.Errorf("the reply to PING is %q, error %w", reply, err)
	})
	if err != nil {
		t.Errorf("redis-server does not answer: %v", err)
	}
	return time.Now()
}
