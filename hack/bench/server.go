package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// server is a redis-server on loopback: no persistence, one thread, its default configuration otherwise.
type server struct {
	cmd     *exec.Cmd
	port    int
	address string
	folder  string
}

func startServer(ctx context.Context) (*server, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	folder, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, err
	}
	s := &server{port: port, address: "127.0.0.1:" + strconv.Itoa(port), folder: folder}
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", folder, "--logfile", "redis.log")
	if err := s.cmd.Start(); err != nil {
		s.stop()
		return nil, err
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err = s.do("PING"); err == nil {
			return s, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("redis-server does not answer at %s: %w", s.address, errors.Join(err, ctx.Err()))
		}
	}
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Kill() // an error means that it has already ended
		_ = s.cmd.Wait()         // killed
	}
	_ = os.RemoveAll(s.folder) // a temporary folder that stays is no reason to fail
}

// fill empties the server and sets so many keys, numbered from first, under the names that format gives them.
func (s *server) fill(format string, first, keys, valueBytes int) error {
	if _, err := s.do("FLUSHALL"); err != nil {
		return err
	}
	value := strings.Repeat("x", valueBytes)
	const perCommand = 1000
	for from := 0; from < keys; from += perCommand {
		words := []string{"MSET"}
		for k := from; k < min(from+perCommand, keys); k++ {
			words = append(words, fmt.Sprintf(format, first+k), value)
		}
		if _, err := s.do(words...); err != nil {
			return err
		}
	}
	v, err := s.do("DBSIZE")
	if err == nil && v.Text != strconv.Itoa(keys) {
		err = fmt.Errorf("%s keys exist, not %d", v.Text, keys)
	}
	return err
}

// misses is the number of reads of missing keys since the server's start.
func (s *server) misses() (int64, error) {
	v, err := s.do("INFO", "stats")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(v.Text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "keyspace_misses:"); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.New("INFO has no keyspace_misses")
}

// do sends one command over a new connection.
func (s *server) do(words ...string) (resp.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return new(redis.Dialer).Dial(ctx, s.address) })
	defer c.Close()
	return c.Do(ctx, words...)
}
