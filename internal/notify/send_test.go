package notify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/egress"
)

// send posts to a path of a server that answers as given.
func send(t *testing.T, c Client, path, body string, answer http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	at, err := ParseURL(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return c.Send(t.Context(), at, "id", []byte(body))
}

func local() Client { return Client{Hosts: egress.Hosts{"127.0.0.1"}} }

// A notification is a POST request; its type is JSON if its body is.
func TestSend(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"text": "a"}`: "application/json", "a": "text/plain; charset=utf-8"} {
		got := make(chan string, 1)
		err := send(t, local(), "/services/T0/B0?a=b", body, func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got <- fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"),
				text)
			w.WriteHeader(http.StatusNoContent)
		})
		if want := "POST /services/T0/B0?a=b " + want + " id " + body; err != nil || <-got != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// A server that refuses, hangs, redirects, never ends or sends the URL back costs little, and its error shows nothing
// of the URL.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	const path = "/services/s3cretT0KEN/s3cretB0X?key=s3cret%20key"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"refuses": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "invalid_payload",
				http.StatusBadRequest)
		}, "the server answers 400 Bad Request: invalid_payload"},
		"overloaded": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(
				http.StatusServiceUnavailable)
		}, "the server answers 503 Service Unavailable"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // only then the end of the connection is seen
			<-r.Context().Done()
		}, "no answer within 200ms"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, "the server redirects to another address, which is not followed"},
		"redirects as GET": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL,
				http.StatusFound)
		}, "the server redirects to another address, which is not followed"},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("x y", 1<<14))); err != nil {
					return
				}
			}
		}, "the server answers 502 Bad Gateway: x yx y"},
		"endless headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
			}
		}, "headers exceeded"},
		"sends the URL back": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "no %s, %s, %s, http://%s%s", r.URL, r.URL.Path, r.URL.Query().Get("key"), r.Host, r.URL)
		}, "the server answers 404 Not Found: no (redacted)?(redacted), (redacted), (redacted)"},
		"sends a piece of the token": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "unknown: ..."+r.URL.Path[11:20]+" is no_service", http.StatusForbidden)
		}, "the server answers 403 Forbidden: unknown: ...(redacted) is no_service"},
		"is none": {func(w http.ResponseWriter, r *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(connection, "%s\r\n\r\n", r.URL)
				_ = connection.Close()
			}
		}, "malformed HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := local()
			client.Timeout = 10 * time.Second
			if name == "hangs" {
				client.Timeout = 200 * time.Millisecond
			}
			err := send(t, client, path, "{}", c.answer)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for _, secret := range []string{"s3cret", "T0KEN", "B0X", "127.0.0.1:", "cretT0"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q shows %q", err, secret)
				}
			}
			if len(err.Error()) > 600 {
				t.Errorf("%d bytes", len(err.Error()))
			}
		})
	}
}

// Requests go only to hosts that are named, and nowhere without a list. The error shows the flag, and nothing of the
// URL, which is a secret.
func TestHosts(t *testing.T) {
	t.Parallel()
	touched := func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }
	for name, hosts := range map[string]egress.Hosts{"not on the list": {"hooks.slack.com"}, "no list": nil} {
		if err := send(t, Client{Hosts: hosts}, "", "", touched); err == nil ||
			err.Error() !=
				"the operator may not send requests to this host: it is not among its --notify-hosts, where an administrator names hosts" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is no URL of a webhook is refused, without a word of it.
func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "s3cret", "hooks.slack.com/s3cret", "ftp://a/s3cret", "file:///s3cret",
		"https:///s3cret", "http://a/%zz-s3cret", "https://a/" + strings.Repeat("s3cret", 400),
	} {
		if _, err := ParseURL(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	if at, err := ParseURL("https://hooks.slack.com/services/a\n"); err != nil || at.Path != "/services/a" {
		t.Errorf("%v, %v", at, err)
	}
}
