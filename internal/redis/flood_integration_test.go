//go:build integration

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A server holds what it was sent, executes nothing, and drops it when the client hangs up.
func TestFlood(t *testing.T) { redistest.Each(t, testFlood) }

func testFlood(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	for name, tc := range map[string]struct {
		options redistest.Options
		login   redis.Login
	}{
		"plain":         {redistest.Options{}, redis.Login{}},
		"with password": {redistest.Options{Password: "s3cret"}, redis.Login{Password: "s3cret"}},
		"over TLS":      {redistest.Options{TLS: authority}, redis.Login{TLS: authority.Client("client")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := redistest.NewServer(t, tc.options), redis.NewClient(nil)
			defer client.Close()
			used := func() int64 { return usedMemory(t, client, server, tc.login) }
			before := used()
			const argument, most = 8 << 20, 50 << 20
			var sent int64
			for sent < most { // in several calls
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				var err error
				if sent, err = client.Flood(ctx, "k", server.Address(), tc.login, argument, most); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			if sent != most {
				t.Errorf("%d bytes were sent, want %d", sent, most)
			}
			await.Until(t, "the server holds them", func() error {
				if more := used() - before; more < most {
					return errors.New("too little")
				}
				return nil
			})
			if n := server.Calls("echo"); n > 0 {
				t.Errorf("%d requests were executed", n)
			}
			client.HangUp("other")
			if more := used() - before; more < most {
				t.Errorf("it holds %d bytes after another one has hung up", more)
			}
			client.HangUp("k")
			await.Until(t, "the server drops them", func() error {
				if more := used() - before; more > most/10 {
					return errors.New("too much")
				}
				return nil
			})
		})
	}
}

func usedMemory(t *testing.T, client *redis.Client, server *redistest.Server, login redis.Login) int64 {
	t.Helper()
	reply, err := client.Do(t.Context(), server.Address(), login, "INFO", "memory")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := reply.(string)
	return redis.ParseInfo(text).Int("used_memory")
}

// Why a server takes no more is said, and one that has ended is told from that.
func TestFloodThatIsRefused(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(nil)
	defer client.Close()
	// what the kernel holds is sent before the server has seen the request
	refusal := func(server *redistest.Server, argument int64) (err error) {
		for err == nil {
			_, err = client.Flood(t.Context(), server.Address(), server.Address(), redis.Login{}, argument, 1<<40)
		}
		return err
	}
	err := refusal(redistest.Start(t, "proto-max-bulk-len 1mb"), 1<<30)
	if !redis.IsReply(err) || !strings.Contains(err.Error(), "invalid bulk length") {
		t.Errorf("a longer argument than the server takes: %v", err)
	}
	if err := refusal(redistest.Start(t, "client-query-buffer-limit 1mb"), 256<<20); !redis.IsBroken(err) {
		t.Errorf("a longer request than the server takes: %v", err)
	}
	dies := redistest.Start(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		await.Pass(50*time.Millisecond, "a part of what is sent")
		dies.Kill()
	}()
	for err = nil; err == nil; {
		_, err = client.Flood(t.Context(), "dies", dies.Address(), redis.Login{}, 8<<20, 1<<40)
		client.HangUp("dies")
	}
	<-ended
	if !redis.IsBroken(err) {
		t.Errorf("a server that ends: %v", err)
	}
}
