//go:build integration

package topology

import (
	"context"
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

// answeredAfter is how long a server takes to answer.
func answeredAfter(t *testing.T, server *redistest.Server) time.Duration {
	t.Helper()
	began := time.Now()
	server.Do("PING")
	return time.Since(began)
}

// The server works the queue off by itself, and lets no other client in between.
func TestQueue(t *testing.T) {
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
			server, real := redistest.NewServer(t, tc.options), NewReal()
			defer real.Close()
			if err := real.Queue(t.Context(), "k", server.Address(), tc.login, pauses(3)); err != nil {
				t.Fatal(err)
			}
			if err := real.Queue(t.Context(), "k", server.Address(), tc.login, pauses(30)); err != nil || !real.Queued("k") {
				t.Errorf("a second queue of the same key: %v", err)
			}
			if took := answeredAfter(t, server); took < 800*time.Millisecond || took > 2*time.Second {
				t.Errorf("answered after %s, want 3 x 300ms", took)
			}
			redistest.Wait(t, "the queue is forgotten", func() error { return notYet(real.Queued("k")) })
		})
	}
}

// HangUp, and the end of the process that queued, leave nothing but what the server has begun.
func TestQueueEnds(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{})
	for name, end := range map[string]func(*Real){"HangUp": func(r *Real) { r.HangUp("k") }, "Close": func(r *Real) { r.Close() }} {
		real := NewReal()
		if err := real.Queue(t.Context(), "k", server.Address(), Login{}, pauses(3600)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
		end(real)
		if took := answeredAfter(t, server); took > time.Second {
			t.Errorf("%s: answered after %s, want 300ms at most", name, took)
		}
		if real.Queued("k") {
			t.Errorf("%s: still queued", name)
		}
	}
}

func TestQueueRefused(t *testing.T) {
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
	if took := answeredAfter(t, server); took > 200*time.Millisecond {
		t.Errorf("something was paused: answered after %s", took)
	}
	server.Do("CLIENT", "PAUSE", "600", "ALL") // somebody else's: the queue waits behind it, and is dropped with the connection
	if err := real.Queue(t.Context(), "k", server.Address(), Login{Password: "s3cret", Timeout: 200 * time.Millisecond}, pauses(30)); err == nil || IsReply(err) {
		t.Errorf("queued at a server that does not answer: %v", err)
	}
	if took := answeredAfter(t, server); took > time.Second {
		t.Errorf("answered after %s: what was queued was carried out", took)
	}
}

func notYet(still bool) error {
	if still {
		return context.DeadlineExceeded
	}
	return nil
}
