package memredis_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

const address = "redis:6379"

type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, n *memnet.Network) *client {
	t.Helper()
	c, err := n.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, c, bufio.NewReader(c)}
}

// do sends a command and is the reply in one word after the other.
func (c *client) do(command string) string {
	c.t.Helper()
	_, _ = c.Write(resp.AppendCommand(nil, strings.Fields(command)...))
	return c.read()
}

// read is what comes next.
func (c *client) read() string {
	c.t.Helper()
	v, err := resp.ReadValue(c.in)
	if err != nil {
		c.t.Fatal(err)
	}
	return flat(v)
}

func flat(v resp.Value) string {
	words := []string{v.Text}
	if v.Type == '_' {
		words[0] = "null"
	}
	for _, item := range v.Items {
		words = append(words, flat(item))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func TestCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		s := memredis.Start(t, n, address, memredis.Options{Password: "secret"})
		c := dial(t, n)
		for _, tt := range [][2]string{
			{"PING", "NOAUTH Authentication required."},
			{"AUTH wrong", "WRONGPASS"},
			{"AUTH secret", "OK"},
			{"PING", "PONG"},
			{"GET a", "null"},
			{"SET a 1 PX 1500", "OK"},
			{"GET a", "1"},
			{"INCR a", "2"},
			{"EXISTS a b", "1"},
			{"PTTL a", "1500"},
			{"SETBIT bits 9 1", "0"},
			{"SETBIT bits 9 1", "1"},
			{"GETBIT bits 9", "1"},
			{"GETBIT bits 99", "0"},
			{"BITCOUNT bits", "1"},
			{"STRLEN bits", "2"},
			{"MSET k1 hello k2 world", "OK"},
			{"MGET k1 none k2", "hello null world"},
			{"GETRANGE k1 1 -2", "ell"},
			{"DBSIZE", "4"},
			{"DEL k1 k3", "1"},
			{"SET a x NX", "null"},
			{"SET a", "ERR wrong number of arguments for 'set' command"},
			{"NONSENSE", "ERR unknown command 'NONSENSE'"},
			{"CONFIG GET appendfsync", "appendfsync everysec"},
			{"HELLO 3", "server redis version"},
			{"CONFIG GET appendfsync", "appendfsync everysec"},
			{"GET none", "null"},
			{"ROLE", "master"},
			{"LATENCY LATEST", ""},
			{"INFO", "# Server"},
		} {
			if got := c.do(tt[0]); !strings.HasPrefix(got, tt[1]) {
				t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
			}
		}
		time.Sleep(1500 * time.Millisecond)
		if got := c.do("GET a"); got != "null" {
			t.Errorf("an expired key is %q", got)
		}
		s.SetReadOnly(true)
		if got := c.do("SET a 1"); !strings.HasPrefix(got, "READONLY") {
			t.Errorf("a replica: %q", got)
		}
		s.SetReadOnly(false)
		s.SetLoading(true)
		if got := c.do("PING"); !strings.HasPrefix(got, "LOADING") || !strings.Contains(c.do("INFO"), "loading:1") {
			t.Errorf("while loading: %q", got)
		}
		s.SetLoading(false)
		s.Answer("set", "-OOM full")
		if got := c.do("SET a 1"); got != "OOM full" || s.Calls("SET") != 5 {
			t.Errorf("a fixed reply: %q, %d calls", got, s.Calls("SET"))
		}
	})
}

// Commands of all connections are performed one after the other, each at its cost.
func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		s := memredis.Start(t, n, address, memredis.Options{Cost: 10 * time.Millisecond})
		began := time.Now()
		c := dial(t, n)
		_, _ = c.Write([]byte(strings.Repeat("*1\r\n$4\r\nPING\r\n", 3)))
		synctest.Wait()
		if dial(t, n).do("PING"); time.Since(began) != 40*time.Millisecond {
			t.Errorf("the fourth command ended after %s", time.Since(began))
		}
		s.SetCost(0)
		began = time.Now()
		if c = dial(t, n); c.do("DEBUG SLEEP 0.5") != "OK" || time.Since(began) != 500*time.Millisecond {
			t.Errorf("DEBUG SLEEP 0.5 took %s", time.Since(began))
		}
		if log := c.do("SLOWLOG GET 1"); !strings.Contains(log, "500000 DEBUG SLEEP") {
			t.Errorf("the slow log: %q", log)
		}
		if !strings.Contains(c.do("INFO"), "used_cpu_user:0.54") {
			t.Error("INFO does not have the time that the commands took")
		}
	})
}

func TestStopAndKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		s := memredis.Start(t, n, address, memredis.Options{})
		c := dial(t, n)
		c.do("SET a 1")
		s.Stop()
		began := time.Now()
		time.AfterFunc(time.Second, s.Continue)
		if got := dial(t, n).do("GET a"); got != "1" || time.Since(began) != time.Second {
			t.Errorf("%q after %s", got, time.Since(began))
		}
		s.Stop()
		_, _ = c.Write(resp.AppendCommand(nil, "SET", "a", "2"))
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a frozen server: %v", err)
		}
		s.Kill()
		_ = c.SetReadDeadline(time.Time{})
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a killed server: %v", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a dial: %v", err)
		}
		s.Restart()
		if c = dial(t, n); c.do("GET a") != "null" || s.Clients() != 1 {
			t.Errorf("after a restart: %d clients", s.Clients())
		}
	})
}

func TestPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		s := memredis.Start(t, n, address, memredis.Options{})
		c := dial(t, n)
		if n := s.Publish("news", "first"); n != 0 {
			t.Errorf("sent to %d", n)
		}
		if got := c.do("SUBSCRIBE news"); got != "subscribe news 1" {
			t.Errorf("subscribed: %q", got)
		}
		if n := s.Publish("news", "second"); n != 1 {
			t.Errorf("sent to %d", n)
		}
		if got := c.read(); got != "message news second" {
			t.Errorf("got %q", got)
		}
		_ = c.Close()
		synctest.Wait()
		if n := s.Publish("news", "third"); n != 0 {
			t.Errorf("sent to %d after the connection ended", n)
		}
	})
}
