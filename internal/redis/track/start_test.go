package track

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// says makes a server introduce itself.
func says(s *memredis.Server, mode, role string) {
	s.Answer("HELLO", encode([]any{"server", "redis", "mode", mode, "role", role}))
}

// detect detects the kind within a time.
func (w *world) detect(within time.Duration, target Target) (topology.Kind, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	target.After, target.Log, target.tcp = time.After, slog.New(slog.DiscardHandler), w.network.Dial
	return Detect(ctx, target)
}

// A replication that starts is not taken for one of its servers: neither while a server does not answer, nor while its
// replicas are primaries still.
func TestDetectWaitsForEveryAddress(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		target := Target{Addresses: []string{"a:1", "b:1"}}
		a := w.server("a:1")
		says(a, "standalone", "master")
		if kind, err := w.detect(10*time.Second, target); err == nil || !strings.Contains(err.Error(), "b:1: ") ||
			!strings.Contains(err.Error(), "once every address answers") {
			t.Errorf("with one of two: %q, %v", kind, err)
		}
		b := w.server("b:1")
		says(b, "standalone", "master")
		if kind, err := w.detect(10*time.Second, target); err == nil ||
			!strings.Contains(err.Error(), "a:1, b:1 are primaries") || IsLasting(err) {
			t.Errorf("with two primaries: %q, %v", kind, err)
		}
		time.AfterFunc(5*time.Second, func() { says(b, "standalone", "slave") })
		if kind, err := w.detect(10*time.Second, target); err != nil || kind != topology.KindReplication {
			t.Errorf("with a replica: %q, %v", kind, err)
		}
	})
}

// A server that rejects the login for now, or the connection, is not taken for one without HELLO.
func TestDetectIsNotMisledByErrors(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		s := w.server("a:1")
		target := Target{Addresses: []string{"a:1"}}
		for _, command := range []string{"HELLO", "INFO", "AUTH"} {
			s.Answer(command, "-ERR max number of clients reached")
		}
		for name, login := range map[string]LoginFunc{
			"no login": nil,
			"login":    func() (redis.Login, error) { return redis.Login{Password: "x"}, nil },
		} {
			target.Login = login
			if kind, err := w.detect(10*time.Second, target); err == nil ||
				!strings.Contains(err.Error(), "max number of clients") || IsLasting(err) {
				t.Errorf("%s: %q, %v", name, kind, err)
			}
		}
		target.Login = nil
		s.Answer("HELLO", "-ERR unknown command 'HELLO'")
		s.Answer("INFO", "-ERR unknown command 'INFO'")
		if kind, err := w.detect(10*time.Second, target); err != nil || kind != topology.KindStandalone {
			t.Errorf("a proxy: %q, %v", kind, err)
		}
	})
}

// A proxy that closes the connection on HELLO and INFO, or never answers them, is one server. A server that ends
// instead of an answer is no proxy.
func TestDetectAProxyThatIsSilent(t *testing.T) {
	for _, silence := range []string{memredis.HangUp, memredis.NoReply} {
		inMemory(t, func(t *testing.T, w *world) {
			s := w.server("a:1")
			silent, left := func(string, []string) any { return silence }, 2
			s.Script("HELLO", silent)
			s.Script("INFO", silent)
			target := Target{Addresses: []string{"a:1"}}
			if kind, err := w.detect(20*time.Second, target); err != nil || kind != topology.KindStandalone {
				t.Errorf("%s: %q, %v", silence, kind, err)
			}
			s.Script("HELLO", func(string, []string) any {
				if left--; left >= 0 {
					return silence
				}
				return nil
			})
			s.Script("CLUSTER", silent)
			if kind, err := w.detect(20*time.Second, target); err != nil || kind != topology.KindStandalone || left >= 0 {
				t.Errorf("a server that ended, %s: %q, %v", silence, kind, err)
			}
			_, _, err := w.start(timeLimit(t, 2*time.Second), target, topology.KindCluster)
			if want := map[string]string{
				memredis.HangUp: "closes the connection on CLUSTER SLOTS", memredis.NoReply: "no reply in time",
			}[silence]; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", silence, err, want)
			}
		})
	}
}

func timeLimit(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// What keeps a deployment from being found is told once a second at most, and in the same words.
func TestTroubleIsTold(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		w.server("a:1").Stop()
		for _, kind := range []topology.Kind{"", topology.KindReplication, topology.KindSentinel, topology.KindCluster} {
			told := map[string]int{}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			target := Target{Addresses: []string{"a:1"}, Trouble: func(err error) { told[err.Error()]++ }}
			if kind == "" {
				_, _ = w.detect(20*time.Second, target)
			} else if _, _, err := w.start(ctx, target, kind); err == nil {
				t.Errorf("%s: it began", kind)
			}
			cancel()
			times := 0
			for _, n := range told {
				times += n
			}
			if len(told) != 1 || times < 5 || times > 20 {
				t.Errorf("%s: told %v", kind, told)
			}
		}
	})
}

// What waiting does not change ends the wait, with the error of the address.
func TestWhatDoesNotPassEndsTheWait(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		missing := errors.New("no such file")
		w.server("a:1")
		target := Target{
			Addresses: []string{"a:1"}, Login: func() (redis.Login, error) { return redis.Login{}, missing },
			Lasting: func(err error) bool { return errors.Is(err, missing) },
		}
		began := time.Now()
		_, err := w.detect(time.Minute, target)
		if took := time.Since(began); !IsLasting(err) || !errors.Is(err, missing) || took > time.Second {
			t.Errorf("Detect: after %s: %v", took, err)
		}
		for _, kind := range []topology.Kind{topology.KindSentinel, topology.KindReplication, topology.KindCluster} {
			if _, took, err := w.start(t.Context(), target, kind); !IsLasting(err) || !errors.Is(err, missing) ||
				took > time.Second {
				t.Errorf("Start of %s: after %s: %v", kind, took, err)
			}
		}
		w.server("s:1").Answer("SENTINEL MASTERS", encode([]any{[]any{"name", "cart"}, []any{"name", "shop"}}))
		if _, took, err := w.start(t.Context(), Target{Sentinels: []string{"s:1"}}, topology.KindSentinel); !IsLasting(err) ||
			!strings.Contains(err.Error(), "cart, shop: set the name of one of them") || took > time.Second {
			t.Errorf("several masters: after %s: %v", took, err)
		}
	})
}
