package dashboard

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func v(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }

// served serves pages on a port.
func served(t *testing.T, h *Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		server.Close()
	})
	return server.URL
}

// follow opens a stream of events.
func follow(t *testing.T, url string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer admin")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	return bufio.NewScanner(response.Body)
}

// next is the next line that is not empty; "" = the stream has ended.
func next(lines *bufio.Scanner) string {
	for lines.Scan() {
		if text := lines.Text(); text != "" {
			return text
		}
	}
	return ""
}

func TestEventsOfAnObject(t *testing.T) {
	t.Parallel()
	s := newStage()
	lines := follow(t, served(t, s.handler(Limits{Every: 10 * time.Millisecond}))+"/shop/redisloadtests/one/events")
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := next(lines); got != w {
				t.Fatalf("%q, want %q", got, w)
			}
		}
	}
	expect("retry: 3000", "event: revision", "data: r1")
	s.set(Revision{ID: "r2"})
	expect("event: revision", "data: r2")
	s.set(Revision{ID: "r3", Over: true})
	expect("event: over", "data: r3", "")
}

func TestEventsOfADeletedObject(t *testing.T) {
	t.Parallel()
	s := newStage()
	lines := follow(t, served(t, s.handler(Limits{Every: 10 * time.Millisecond}))+"/shop/redisloadtests/one/events")
	for range 3 {
		next(lines)
	}
	s.mu.Lock()
	s.objects = nil
	s.mu.Unlock()
	if got := next(lines); got != "event: gone" {
		t.Errorf("%q", got)
	}
}

// A quiet stream shows that it is alive, and ends after its time, so that its reader is authenticated again.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	lines := follow(t,
		served(t,
			newStage().handler(Limits{
				Every:     5 * time.Millisecond,
				Beat:      20 * time.Millisecond,
				StreamFor: 300 * time.Millisecond,
			}))+"/events")
	alive := 0
	for lines.Scan() {
		if lines.Text() == ": alive" {
			alive++
		}
	}
	if alive == 0 {
		t.Error("no sign of life")
	}
}

// There are only so many streams; readers beyond that get an answer.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	h := newStage().handler(Limits{Streams: 1, Every: 10 * time.Millisecond})
	url := served(t, h)
	lines := follow(t, url+"/events")
	next(lines)
	if w := get(h, "admin", "/events"); w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "Too many pages") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A reader who does not read loses the connection, and blocks no other one.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := newStage()
	h := s.handler(Limits{Every: time.Millisecond, Write: 50 * time.Millisecond, Streams: 2})
	url := served(t, h)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(1)
	if _, err := io.WriteString(conn,
		"GET /shop/redisloadtests/one/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	stop := time.Now().Add(2 * time.Minute)
	long := strings.Repeat("x", 64<<10)
	for i := 0; ; i++ {
		s.set(Revision{ID: long + string(rune('a'+i%26))})
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		if w := get(h, "admin", "/bank/redisloadtests/one"); w.Code != http.StatusOK || time.Since(began) > time.Minute {
			t.Fatalf("another reader: %d after %s", w.Code, time.Since(began))
		}
		if i > 10 && len(h.streams) == 0 {
			return // it was cut off
		}
		if time.Now().After(stop) {
			t.Fatal("the stream of a reader who does not read goes on")
		}
	}
}
