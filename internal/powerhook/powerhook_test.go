package powerhook

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var off = Request{
	Node:       "node-b",
	ProviderID: "aws:///eu-1/i-0",
	Power:      Off,
	Fault:      Fault{Namespace: "shop", Name: "lose", UID: "u-1"},
	Deadline:   Deadline(time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))),
}

// files writes what a hook needs into a folder.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func hookAt(t *testing.T, address, files string) *Hook {
	t.Helper()
	hook, err := New(address, files)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// The protocol, as docs/faults/nodeloss.md has it.
func TestSwitch(t *testing.T) {
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = strings.Join([]string{
			r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"),
			string(body),
		}, " ")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	hook := hookAt(t, server.URL+"/power?site=1", files(t, map[string]string{"token": "s3cret-token\n", "ca.crt": trusted}))
	if err := hook.Switch(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	want := `POST /power?site=1 application/json Bearer s3cret-token {"node":"node-b","providerID":"aws:///eu-1/i-0",` +
		`"power":"Off","fault":{"namespace":"shop","name":"lose","uid":"u-1"},"deadline":"2026-01-02T02:04:05Z"}`
	if got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
	err := hookAt(t, server.URL, "").Switch(t.Context(), off)
	if !errors.Is(err, ErrUnsent) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("whose certificate nobody known has signed: %v", err)
	}
}

// What an answer means, and that it shows no token.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       func(w http.ResponseWriter, r *http.Request)
		undone, gone bool
		says         string
	}{
		"a refusal": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "not\nthis one, "+r.Header.Get("Authorization"), http.StatusForbidden)
			},
			undone: true, says: "switch power of node node-b off: the power hook refuses: 403 Forbidden: not this one, Bearer ",
		},
		"no machine": {
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
			undone: true, gone: true, says: "410 Gone",
		},
		"too many requests": {
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
			says:   "the power hook fails: 429",
		},
		"a failure": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, strings.Repeat("x", 1<<20), http.StatusBadGateway)
			},
			says: "the power hook fails: 502 Bad Gateway: xxx",
		},
		"a redirect": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			},
			says: "which is not followed",
		},
		"a broken connection": {
			answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			says:   "EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(tc.answer))
			defer server.Close()
			err := hookAt(t, server.URL+"/secret-path", files(t, map[string]string{"token": "s3cret-token"})).Switch(t.Context(), off)
			switch {
			case err == nil:
				t.Fatal("no error")
			case Undone(err) != tc.undone || Gone(err) != tc.gone || !strings.Contains(err.Error(), tc.says):
				t.Errorf("undone %t, gone %t: %v", Undone(err), Gone(err), err)
			case len(err.Error()) > 400 || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "secret-path"):
				t.Errorf("%d bytes: %v", len(err.Error()), err)
			}
		})
	}
}

// A hook that was not reached has done nothing; one that does not answer may have.
func TestUnreached(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	closed := hookAt(t, server.URL, "")
	if err := closed.Switch(t.Context(), off); !errors.Is(err, ErrUnsent) || !Undone(err) {
		t.Errorf("a closed port: %v", err)
	}
	if err := hookAt(t, server.URL, files(t, map[string]string{"ca.crt": "none"})).Switch(t.Context(), off); !Undone(err) ||
		!strings.Contains(err.Error(), "no certificate in PEM") {
		t.Errorf("no certificate: %v", err)
	}
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hangs.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := hookAt(t, hangs.URL, "").Switch(ctx, off)
	if err == nil || Undone(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
	metadata := hookAt(t, "http://localhost:1/", "")
	if err := metadata.Switch(t.Context(), off); !Undone(err) || !strings.Contains(err.Error(), "--power-hook-url") {
		t.Errorf("a name that leads to the operator itself: %v", err)
	}
}

func TestURL(t *testing.T) {
	for _, address := range []string{"", "power.example", "ftp://power.example", "https://", "http://:80/", "http://*/", "https://a b/"} {
		if _, err := New(address, ""); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
	if _, err := New("https://power.infra.svc:8443/v1/power", ""); err != nil {
		t.Error(err)
	}
}
