package agent_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// The load is not prepared before the network works, and the status says why it waits.
func TestAgentWaitsForItsSidecar(t *testing.T) {
	var ready atomic.Bool
	sidecar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(sidecar.Close)
	w := serve(t, &agenttest.Runner{}, func(c *agent.Config) { c.Sidecar.ReadyURL = sidecar.URL + "/healthz/ready" })
	await := func(state agent.State, message string) {
		t.Helper()
		var status agent.Status
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if status = w.status(); status.State == state && strings.Contains(status.Message, message) {
				return
			}
		}
		t.Fatalf("the agent is %+v, want %s with %q", status, state, message)
	}
	await(agent.Preparing, "waits for the sidecar: GET")
	ready.Store(true)
	await(agent.Ready, "")
}

func TestSidecarQuits(t *testing.T) {
	var asked atomic.Value
	sidecar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.URL.Path)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(sidecar.Close)
	over, cancel := context.WithCancel(t.Context())
	cancel() // by SIGTERM
	for path, want := range map[string]string{"/quitquitquit": "ended the sidecar", "/moved": "307 Temporary Redirect"} {
		var log bytes.Buffer
		agent.Sidecar{QuitURL: sidecar.URL + path}.Quit(over, slog.New(slog.NewTextHandler(&log, nil)))
		if got := asked.Load(); got != "POST "+path || !strings.Contains(log.String(), want) {
			t.Errorf("%s: asked %v, log %s, want %q", path, got, log.String(), want)
		}
	}
}
