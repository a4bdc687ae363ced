//go:build integration

package redis_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func pauses(n int) [][]string {
	all := make([][]string, n)
	for i := range all {
		all[i] = []string{"CLIENT", "PAUSE", "300", "ALL"}
	}
	return all
}

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }

const pause = "client|pause"

// The server processes the queue without the client, and serves no other client in between.
func TestQueue(t *testing.T) { redistest.Each(t, testQueue) }

func testQueue(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	for name, tc := range map[string]struct {
		options redistest.Options
		login   redis.Login
	}{
		"plain":         {redistest.Options{}, redis.Login{}},
		"with password": {redistest.Options{Password: "s3cret"}, redis.Login{Password: "s3cret"}},
		"as ACL user": {
			redistest.Options{Users: []string{"app on >pw +client"}},
			redis.Login{Username: "app", Password: "pw"},
		},
		"over TLS": {redistest.Options{TLS: authority}, redis.Login{TLS: authority.Client("client")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := redistest.NewServer(t, tc.options), redis.NewClient(nil)
			defer client.Close()
			began := time.Now()
			if err := client.Queue(t.Context(), "k", server.Address(), tc.login, pauses(3)); err != nil {
				t.Fatal(err)
			}
			if err := client.Queue(t.Context(), "k", server.Address(), tc.login, pauses(30)); err != nil {
				t.Errorf("a second queue of the same key: %v", err)
			}
			server.Do("PING")
			if took := time.Since(began); took < 900*time.Millisecond {
				t.Errorf("answered after %s, while 3 x 300 ms were queued", took)
			}
			if n := server.Calls(pause); n != 3 {
				t.Errorf("the server was paused %d times, want 3", n)
			}
			await.Until(t, "the queue is forgotten", func() error { return notYet(client.Queued("k")) })
		})
	}
}

// After HangUp, or the end of the process that queued, only the command in progress is completed.
func TestQueueEnds(t *testing.T) { redistest.Each(t, testQueueEnds) }

func testQueueEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redis.Client){
		"HangUp": func(c *redis.Client) { c.HangUp("k") },
		"Close":  func(c *redis.Client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := redistest.Shared(t), redis.NewClient(nil)
			defer client.Close()
			if err := client.Queue(t.Context(), "k", server.Address(), redis.Login{}, pauses(3600)); err != nil {
				t.Fatal(err)
			}
			if !client.Queued("k") {
				t.Error("not queued")
			}
			await.Pass(400*time.Millisecond, "the queue is under way")
			end(client)
			if client.Queued("k") {
				t.Error("still queued")
			}
			begun := server.Calls(pause) // answered when the queue is empty, or after 18 minutes
			await.Pass(700*time.Millisecond, "two pauses would have begun meanwhile")
			if n := server.Calls(pause); n != begun {
				t.Errorf("paused %d times, and %d times some moments later", begun, n)
			}
		})
	}
}

func TestQueueRefused(t *testing.T) { redistest.Each(t, testQueueRefused) }

func testQueueRefused(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Password: "s3cret", Users: []string{"app on >pw +ping"}})
	client := redis.NewClient(nil)
	defer client.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx     context.Context
		address string
		login   redis.Login
		reply   bool
	}{
		"no password":    {t.Context(), server.Address(), redis.Login{}, true},
		"wrong password": {t.Context(), server.Address(), redis.Login{Password: "guess"}, true},
		"NOPERM":         {t.Context(), server.Address(), redis.Login{Username: "app", Password: "pw"}, true},
		"no listener":    {t.Context(), "127.0.0.1:1", redis.Login{}, false},
		"cancelled":      {cancelled, server.Address(), redis.Login{Password: "s3cret"}, false},
	} {
		err := client.Queue(tc.ctx, "k", tc.address, tc.login, pauses(3))
		if err == nil || redis.IsReply(err) != tc.reply || client.Queued("k") {
			t.Errorf("%s: %v, queued %v", name, err, client.Queued("k"))
		}
	}
	if n := server.Calls(pause); n != 0 {
		t.Errorf("paused %d times", n)
	}
	// another client's: the queue waits behind it, and is dropped with the connection
	server.Do("CLIENT", "PAUSE", "5000", "ALL")
	if err := client.Queue(t.Context(), "k", server.Address(),
		redis.Login{Password: "s3cret", Timeout: 200 * time.Millisecond}, pauses(30)); err == nil || redis.IsReply(err) {
		t.Errorf("queued at a server that does not answer: %v", err)
	}
	if n := server.Calls(pause); n != 1 {
		t.Errorf("paused %d times, want the queue dropped", n-1)
	}
}

// A recovered server is dialled immediately, however many dials have failed before.
func TestRecoveredServerIsDialledImmediately(t *testing.T) {
	t.Parallel()
	server, client := redistest.Start(t), redis.NewClient(nil)
	defer client.Close()
	server.Kill()
	for range 10 {
		if _, err := client.Do(t.Context(), server.Address(), redis.Login{}, "PING"); err == nil ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("down: %v", err)
		}
	}
	server.Restart()
	if _, err := client.Do(t.Context(), server.Address(), redis.Login{}, "PING"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func notYet(still bool) error {
	if still {
		return context.DeadlineExceeded
	}
	return nil
}
