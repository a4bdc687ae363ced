package redis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// world is a server in memory, and a client of it.
type world struct {
	t       *testing.T
	network *memnet.Network
	server  *memredis.Server
	client  *redis.Client
}

const address = "a:1"

func inMemory(t *testing.T, o memredis.Options, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		w := &world{
			t:       t,
			network: network,
			server:  memredis.Start(t, network, address, o),
			client:  redis.NewClient(network.Dial),
		}
		defer w.client.Close()
		test(w)
	})
}

// do sends a command and checks its reply, or that the error contains want.
func (w *world) do(login redis.Login, want string, command ...any) error {
	w.t.Helper()
	reply, err := w.client.Do(w.t.Context(), address, login, command...)
	if err != nil {
		reply = err.Error()
	}
	if text, _ := reply.(string); want == "" || !strings.Contains(text, want) {
		w.t.Errorf("%v: %v, want %q", command, reply, want)
	}
	return err
}

func TestClientKeepsConnections(t *testing.T) {
	inMemory(t, memredis.Options{}, func(w *world) {
		dials := func(want int) {
			t.Helper()
			if n := w.network.Dials(address); n != want {
				t.Errorf("dialled %d times, want %d", n, want)
			}
		}
		for range 3 {
			_ = w.do(redis.Login{}, "PONG", "PING")
		}
		dials(1)
		time.Sleep(9 * time.Minute)
		_ = w.do(redis.Login{}, "PONG", "PING")
		dials(1)
		w.network.Set(address, memnet.Refuse)
		_ = w.do(redis.Login{}, "PONG", "PING") // a server that accepts no new connections
		w.network.Set(address, memnet.Pass)
		time.Sleep(11 * time.Minute)
		_ = w.do(redis.Login{}, "PONG", "PING")
		dials(2)
		w.server.Kill()
		w.server.Restart()
		synctest.Wait()
		_ = w.do(redis.Login{}, "PONG", "PING") // the connection broke unused: the command is sent over another one, once
		dials(3)
		if n := w.network.Conns(address); n != 1 {
			t.Errorf("%d connections are open", n)
		}
	})
}

func TestClientErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(w *world)
		login   redis.Login
		want    string
		reply   bool
		timeout bool
		after   time.Duration
		unsent  bool
	}{
		"a refusal": {func(w *world) {
			w.server.SetLoading(
				true)
		}, redis.Login{Password: "p"}, "GET at a:1: LOADING", true, false, 0, false},
		"no password":      {func(*world) {}, redis.Login{}, "NOAUTH", true, false, 0, false},
		"a wrong password": {func(*world) {}, redis.Login{Password: "q"}, "WRONGPASS", true, false, 0, true},
		"no listener": {
			func(w *world) { w.server.Kill() },
			redis.Login{},
			"connection refused",
			false,
			false,
			0,
			true,
		},
		"no packet arrives": {func(w *world) {
			w.network.Set(address,
				memnet.Swallow)
		}, redis.Login{}, "dial tcp", false, true, 2 * time.Second, true},
		"it hangs": {
			func(w *world) { w.server.Stop() },
			redis.Login{Timeout: time.Second},
			"no reply",
			false,
			true,
			time.Second,
			false,
		},
		"it hangs at the login": {
			func(w *world) { w.server.Stop() },
			redis.Login{Password: "p", Timeout: time.Second},
			"GET at a:1: ",
			false,
			true,
			time.Second,
			true,
		},
		"it is killed during a command": {func(w *world) {
			w.server.SetCost(time.Second)
			time.AfterFunc(500*time.Millisecond,
				w.server.Kill)
		}, redis.Login{}, "EOF", false, false, 500 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, memredis.Options{Password: "p"}, func(w *world) {
				tc.prepare(w)
				began := time.Now()
				err := w.do(tc.login, tc.want, "GET", "k")
				if redis.IsReply(err) != tc.reply || redis.IsTimeout(err) != tc.timeout || time.Since(began) != tc.after ||
					errors.Is(err, redis.ErrNotSent) != tc.unsent {
					t.Errorf("%v: reply %v, timeout %v, after %s, unsent %v", err, redis.IsReply(err), redis.IsTimeout(err),
						time.Since(began), errors.Is(err, redis.ErrNotSent))
				}
				w.server.Continue()
			})
		})
	}
}

// An error names the subcommand, but no value: it may be secret.
func TestErrorsNameTheCommand(t *testing.T) {
	inMemory(t, memredis.Options{Password: "p"}, func(w *world) {
		for want, command := range map[string][]any{
			"CONFIG SET at a:1: NOAUTH": {"CONFIG", "SET", "requirepass", "secret"},
			"INFO memory at a:1: ":      {"INFO", "memory"},
			"INFO at a:1: ":             {"INFO"},
			"SET at a:1: ":              {"SET", "key", "value"},
		} {
			if err := w.do(redis.Login{}, want, command...); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v", command, err)
			}
		}
	})
}

// A late reply is not returned as the reply to a later command.
func TestLateReplyIsDropped(t *testing.T) {
	inMemory(t, memredis.Options{}, func(w *world) {
		_ = w.do(redis.Login{}, "OK", "SET", "a", "1")
		w.server.SetCost(3 * time.Second)
		_ = w.do(redis.Login{}, "no reply", "GET", "a")
		w.server.SetCost(0)
		time.Sleep(5 * time.Second)
		_ = w.do(redis.Login{}, "PONG", "PING")
	})
}

// The client sends commands to one server concurrently.
func TestClientIsConcurrent(t *testing.T) {
	inMemory(t, memredis.Options{}, func(w *world) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		w.server.Stop()
		ended := make(chan error)
		for range 10 {
			go func() {
				_, err := w.client.Do(ctx, address, redis.Login{Timeout: time.Minute}, "PING")
				ended <- err
			}()
		}
		for range 10 {
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
		w.server.Continue()
	})
}

func TestEnd(t *testing.T) {
	inMemory(t, memredis.Options{Password: "p"}, func(w *world) {
		if err := w.client.Shutdown(w.t.Context(), address, redis.Login{Password: "q"}); !redis.IsReply(err) {
			t.Errorf("with a wrong password: %v", err)
		}
		w.server.Answer("SHUTDOWN", "-ERR Errors trying to SHUTDOWN. Check logs.")
		if err := w.client.Shutdown(w.t.Context(), address, redis.Login{Password: "p"}); !redis.IsReply(err) {
			t.Errorf("a server that refuses: %v", err)
		}
		w.server.Answer("DEBUG", "+OK")
		if err := w.client.Segfault(w.t.Context(), address, redis.Login{Password: "p"}); err == nil ||
			!strings.Contains(err.Error(), "still running") {
			t.Errorf("a server that keeps running: %v", err)
		}
		w.server.SetCost(time.Second)
		time.AfterFunc(1500*time.Millisecond, w.server.Kill)
		if err := w.client.Segfault(w.t.Context(), address, redis.Login{Password: "p", Timeout: time.Minute}); err == nil {
			t.Error("got success for a server that exits during the login")
		}
	})
	inMemory(t, memredis.Options{}, func(w *world) {
		w.server.SetCost(time.Second)
		time.AfterFunc(1500*time.Millisecond, w.server.Kill) // in the second command
		if err := w.client.Segfault(w.t.Context(), address, redis.Login{}); err != nil {
			t.Error(err)
		}
		if err := w.client.Segfault(w.t.Context(), address, redis.Login{}); err == nil {
			t.Error("got success for a server that is down")
		}
	})
}

func TestSubscribe(t *testing.T) {
	inMemory(t, memredis.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		conn := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return w.network.Dial(ctx, "tcp", address) })
		heard, ended := make(chan string, 10), make(chan bool)
		go func() {
			defer close(ended)
			conn.Subscribe(ctx, "SUBSCRIBE", "news", func() { heard <- "subscribed" }, func(channel, payload string) {
				heard <- channel + " " + payload
			})
		}()
		publish := func(message string) {
			synctest.Wait()
			if n := w.server.Publish("news", message); n != 1 {
				w.t.Errorf("%s: %d subscribers", message, n)
			}
		}
		publish("one")
		time.Sleep(time.Hour) // of silence
		publish("two")
		w.server.Stop()
		time.Sleep(20 * time.Second) // it is closed, and dialled again
		w.server.Continue()
		time.Sleep(5 * time.Second)
		publish("three")
		w.server.Kill()
		time.Sleep(time.Minute)
		w.server.Restart()
		time.Sleep(time.Second)
		publish("four")
		synctest.Wait()
		cancel()
		<-ended
		close(heard)
		for _, want := range []string{
			"subscribed", "news one", "news two", "subscribed", "news three", "subscribed",
			"news four",
		} {
			if got := <-heard; got != want {
				w.t.Errorf("%q, want %q", got, want)
			}
		}
		if n := w.network.Dials(address); n < 60 || n > 90 { // finally one per second
			w.t.Errorf("dialled %d times", n)
		}
	})
}

func TestDialErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(w *world)
		dialer  redis.Dialer
		want    redis.DialError
	}{
		"refused": {func(w *world) { w.server.Kill() }, redis.Dialer{}, redis.DialError{Stage: redis.StageTCP}},
		"hangs": {
			func(w *world) { w.server.Stop() },
			redis.Dialer{Setup: [][]string{{"PING"}}},
			redis.DialError{Stage: redis.StageHello, Command: "PING"},
		},
		"wrong password": {
			func(*world) {},
			redis.Dialer{Login: redis.Login{Password: "q"}},
			redis.DialError{Stage: redis.StageAnswer, Command: "AUTH"},
		},
		"wrong setup": {
			func(*world) {},
			redis.Dialer{Login: redis.Login{Password: "p"}, Setup: [][]string{{"PING"}, {"FLY"}}},
			redis.DialError{Stage: redis.StageAnswer, Command: "FLY"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, memredis.Options{Password: "p"}, func(w *world) {
				tc.prepare(w)
				tc.dialer.TCP = w.network.Dial
				ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
				defer cancel()
				_, err := tc.dialer.Dial(ctx, address)
				got, ok := errors.AsType[*redis.DialError](err)
				if !ok || got.Stage != tc.want.Stage || got.Command != tc.want.Command || got.Address != address || got.Err == nil {
					t.Errorf("%#v", err)
				}
				synctest.Wait()
				if n := w.network.Conns(address); n != 0 && name != "hangs" {
					t.Errorf("%d connections stay open", n)
				}
				w.server.Continue()
			})
		})
	}
}

func TestPlainValues(t *testing.T) {
	v := resp.Value{
		Type: '%',
		Items: []resp.Value{
			{Type: '$', Text: "a"},
			{Type: ':', Text: "7"},
			{Type: '+', Text: "b"},
			{Type: '_'},
			{Type: '$', Text: "c"},
			{Type: '-', Text: "ERR"},
		},
	}
	want := []any{"a", int64(7), "b", nil, "c", redis.Error("ERR")}
	got, _ := redis.Plain(v).([]any)
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("%#v, want %#v", got, want)
		}
	}
}

// A command whose context has ended is not sent, also over an open connection.
func TestNothingIsSentOnceTheContextHasEnded(t *testing.T) {
	inMemory(t, memredis.Options{}, func(w *world) {
		_ = w.do(redis.Login{}, "OK", "SET", "key", "0")
		ended, end := context.WithCancel(w.t.Context())
		end()
		for range 200 {
			if _, err := w.client.Do(ended, address, redis.Login{}, "INCR", "key"); !errors.Is(err, context.Canceled) {
				w.t.Fatalf("%v, want %v", err, context.Canceled)
			}
		}
		synctest.Wait()
		if reply, err := w.client.Do(w.t.Context(), address, redis.Login{}, "GET", "key"); err != nil || reply != "0" {
			w.t.Errorf("the key is %v (%v): a command was carried out", reply, err)
		}
		if n := w.network.Dials(address); n != 1 {
			w.t.Errorf("dialled %d times, want 1: the first connection was not reused", n)
		}
	})
}
