//go:build integration

package topology

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/redistest"
)

func pauses(n int) [][]string {
	all := make([][]string, n)
	for i := range all {
		all[i] = []string{"CLIENT", "PAUSE", "300", "ALL"}
	}
	return all
}

const pause = "client|pause"

// The server works the queue off by itself, and lets no other client in between.
func TestQueue(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	for name, tc := range map[string]struct {
		options redistest.Options
		login   Login
	}{
		"plain":         {redistest.Options{}, Login{}},
		"with password": {redistest.Options{Password: "s3cret"}, Login{Password: "s3cret"}},
		"as ACL user":   {redistest.Options{Users: []string{"app on >pw +client"}}, Login{Username: "app", Password: "pw"}},
		"over TLS":      {redistest.Options{TLS: authority}, Login{TLS: authority.Client("client")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, real := redistest.NewServer(t, tc.options), NewReal()
			defer real.Close()
			began := time.Now()
			if err := real.Queue(t.Context(), "k", server.Address(), tc.login, pauses(3)); err != nil {
				t.Fatal(err)
			}
			if err := real.Queue(t.Context(), "k", server.Address(), tc.login, pauses(30)); err != nil {
				t.Errorf("a second queue of the same key: %v", err)
			}
			server.Do("PING")
			if took := time.Since(began); took < 900*time.Millisecond {
				t.Errorf("answered after %s, while 3 x 300 ms were queued", took)
			}
			if n := server.Calls(pause); n != 3 {
				t.Errorf("the server was paused %d times, want 3", n)
			}
			redistest.Wait(t, "the queue is forgotten", func() error { return notYet(real.Queued("k")) })
		})
	}
}

// HangUp, and the end of the process that queued, leave nothing but what the server has begun.
func TestQueueEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Real){"HangUp": func(r *Real) { r.HangUp("k") }, "Close": func(r *Real) { r.Close() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, real := redistest.Shared(t), NewReal()
			defer real.Close()
			if err := real.Queue(t.Context(), "k", server.Address(), Login{}, pauses(3600)); err != nil {
				t.Fatal(err)
			}
			if !real.Queued("k") {
				t.Error("not queued")
			}
			time.Sleep(400 * time.Millisecond)
			end(real)
			if real.Queued("k") {
				t.Error("still queued")
			}
			begun := server.Calls(pause) // answered once nothing is queued any more, or after 18 minutes
			time.Sleep(700 * time.Millisecond)
			if n := server.Calls(pause); n != begun {
				t.Errorf("paused %d times, and %d times some moments later", begun, n)
			}
		})
	}
}

func TestQueueRefused(t *testing.T) {
	t.Parallel()
	server, real := redistest.NewServer(t, redistest.Options{Password: "s3cret", Users: []string{"app on >pw +ping"}}), NewReal()
	defer real.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx     context.Context
		address string
		login   Login
		reply   bool
	}{
		"no password":    {t.Context(), server.Address(), Login{}, true},
		"wrong password": {t.Context(), server.Address(), Login{Password: "guess"}, true},
		"NOPERM":         {t.Context(), server.Address(), Login{Username: "app", Password: "pw"}, true},
		"nobody listens": {t.Context(), "127.0.0.1:1", Login{}, false},
		"cancelled":      {cancelled, server.Address(), Login{Password: "s3cret"}, false},
	} {
		err := real.Queue(tc.ctx, "k", tc.address, tc.login, pauses(3))
		if err == nil || IsReply(err) != tc.reply || real.Queued("k") {
			t.Errorf("%s: %v, queued %v", name, err, real.Queued("k"))
		}
	}
	if n := server.Calls(pause); n != 0 {
		t.Errorf("paused %d times", n)
	}
	server.Do("CLIENT", "PAUSE", "1500", "ALL") // somebody else's: the queue waits behind it, and is dropped with the connection
	if err := real.Queue(t.Context(), "k", server.Address(), Login{Password: "s3cret", Timeout: 200 * time.Millisecond}, pauses(30)); err == nil || IsReply(err) {
		t.Errorf("queued at a server that does not answer: %v", err)
	}
	if n := server.Calls(pause); n != 1 {
		t.Errorf("paused %d times: what was queued was carried out", n-1)
	}
}

// A server that is back is dialled at once, however many dials have failed before.
func TestServerThatIsBackAnswersAtOnce(t *testing.T) {
	t.Parallel()
	server, real := redistest.Start(t), NewReal()
	defer real.Close()
	server.Kill()
	for range 10 {
		if _, err := real.Ask(t.Context(), server.Address(), Login{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("down: %v", err)
		}
	}
	server.Restart()
	if _, err := real.Ask(t.Context(), server.Address(), Login{}); err != nil {
		t.Errorf("back: %v", err)
	}
}

func notYet(still bool) error {
	if still {
		return context.DeadlineExceeded
	}
	return nil
}
