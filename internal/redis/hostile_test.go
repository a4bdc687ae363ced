package redis_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// A hostile server replies with whatever it likes: every command ends within its time limit, with an error or with a
// reply of bounded size.
func TestHostileReplies(t *testing.T) {
	t.Parallel()
	endless := func(first, again string) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, first)
			for block := strings.Repeat(again, 1+(32<<10)/max(1, len(again))); err == nil; {
				_, err = io.WriteString(c, block)
			}
		}
	}
	silent := func(first string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, first)
			_, _ = io.Copy(io.Discard, c)
		}
	}
	for name, serve := range map[string]func(net.Conn){
		"garbage":             endless("\x00\xff", "\x00\xff\x1b[2J"),
		"HTTP":                silent("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"a long array":        silent("*1000000000\r\n"),
		"an endless array":    endless("*1000000000\r\n", "$1\r\nx\r\n"),
		"a long string":       silent("$9999999999\r\n"),
		"a promised string":   silent("$16000000\r\n"),
		"an endless string":   endless("$16000000\r\n", "x"),
		"an endless line":     endless("-ERR ", "x"),
		"endless nesting":     endless("", "*1\r\n"),
		"endless pushes":      endless("", ">1\r\n+x\r\n"),
		"endless attributes":  endless("", "|1\r\n+x\r\n+y\r\n"),
		"endless replies":     endless("", "+OK\r\n"),
		"MOVED to the victim": silent("-MOVED 1 169.254.169.254:80\r\n"),
		"a byte now and then": func(c net.Conn) {
			_, err := io.WriteString(c, "$100\r\n")
			for err == nil {
				time.Sleep(100 * time.Millisecond)
				_, err = io.WriteString(c, "x")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, client := tcptest.Listen(t, func(c net.Conn) { go serve(c) }), redis.NewClient(nil)
			defer client.Close()
			began := time.Now()
			for range 2 {
				reply, err := client.Do(t.Context(), address, redis.Login{Timeout: 500 * time.Millisecond}, "INFO")
				text := fmt.Sprint(reply, err)
				if text = strings.TrimPrefix(text, "<nil>"); len(text) > 16<<20 ||
					err != nil && (len(text) > 1024 || !utf8.ValidString(text)) {
					t.Errorf("%d bytes: %.200q", len(text), text)
				}
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// Error replies go into conditions, events and logs: what controls a terminal or is no UTF-8 does not.
func TestHostileErrors(t *testing.T) {
	t.Parallel()
	address := tcptest.Listen(t, func(c net.Conn) {
		text := "ERR \x1b]0;owned\x07\r\nType: \xff\xfe\u202e" + strings.Repeat("x", 100000)
		_, _ = fmt.Fprintf(c, "!%d\r\n%s\r\n", len(text), text)
	})
	client := redis.NewClient(nil)
	defer client.Close()
	_, err := client.Do(t.Context(), address, redis.Login{}, "PING")
	if err == nil || !redis.IsReply(err) || len(err.Error()) > 700 ||
		strings.ContainsAny(err.Error(), "\x1b\x07\r\n\u202e") || !utf8.ValidString(err.Error()) {
		t.Errorf("%.300q", fmt.Sprint(err))
	}
}

// Hundreds of servers at a time send as much as they can. The memory for it is that of a few.
func TestHostileServersShareMemory(t *testing.T) {
	const servers = 200
	block := strings.Repeat("x", 32<<10)
	var addresses []string
	for range servers {
		addresses = append(addresses, tcptest.Listen(t, func(c net.Conn) {
			go func() {
				_, err := io.WriteString(c, "$16000000\r\n")
				for err == nil {
					_, err = io.WriteString(c, block)
				}
			}()
		}))
	}
	client := redis.NewClient(nil)
	defer client.Close()
	done, most := make(chan struct{}), uint64(0)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var asking sync.WaitGroup
	for _, address := range addresses {
		asking.Go(func() {
			_, _ = client.Do(t.Context(), address, redis.Login{Timeout: 2 * time.Second}, "INFO")
		})
	}
	go func() {
		asking.Wait()
		close(done)
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(50 * time.Millisecond):
			runtime.GC() // what lives, not what is garbage
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
	}
	t.Logf("%d servers took %d MiB", servers, most>>20)
	if most > 256<<20 { // unbounded: 3 GiB
		t.Errorf("%d servers took %d MiB", servers, most>>20)
	}
}
