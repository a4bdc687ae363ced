//go:build integration

package main

import (
	"bytes"
	encoding "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// agentClient is a client of an agent, like the operator.
type agentClient struct {
	t       *testing.T
	client  *http.Client
	address string
	token   string
}

// ask makes one request and returns the answer's code and body.
func (o *agentClient) ask(method, path string, body any) (int, []byte) {
	o.t.Helper()
	code, answer, err := o.try(method, path, body)
	if err != nil {
		o.t.Fatal(err)
	}
	return code, answer
}

func (o *agentClient) try(method, path string, body any) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequest(method, "https://"+o.address+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+o.token)
	response, err := o.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// await polls the status until it has the state, or fails with the state that the agent reports.
func (o *agentClient) await(p *process, state agent.State) agent.Status {
	o.t.Helper()
	var status agent.Status
	err := await.Try(o.t.Context(), await.Limit, func() error {
		_, body, err := o.try(http.MethodGet, agent.PathStatus, nil)
		if err != nil {
			return err // no listener yet
		}
		if err := json.Unmarshal(body, &status); err != nil {
			o.t.Fatalf("%v in %q", err, body)
		}
		return await.That(status.State == state, "the agent is %+v", status)
	})
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		o.t.Fatalf("%v, want %s; its log:\n%s", err, state, p.err.String())
	}
	return status
}

// startAgent starts the command as a load pod does, and an operator beside it.
func startAgent(t *testing.T, redis string, more ...string) (*process, *agentClient) {
	t.Helper()
	files, credentials := clitest.Mounted(t, clitest.AgentPlan(redis))
	trust, err := agent.ClientTLS(credentials.CertificatePEM)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	p := begin(t, []string{"JOB_COMPLETION_INDEX=1"},
		append([]string{"agent", "--plan", filepath.Join(files, "plan.json"), "--credentials", files, "--listen", address},
			more...)...)
	return p, &agentClient{
		t:       t,
		client:  &http.Client{Transport: &http.Transport{TLSClientConfig: trust}},
		address: address,
		token:   credentials.Token,
	}
}

func TestAgentProcess(t *testing.T) {
	t.Parallel()
	p, o := startAgent(t, redistest.Start(t).Address())
	ready := o.await(p, agent.Ready)
	if ready.Run != "run" || ready.Pod != 1 {
		t.Errorf("the status is %+v, want pod 1 of run", ready)
	}
	if code, body := o.ask(http.MethodPost, agent.PathStart, agent.StartRequest{
		At:       ready.Now + int64(2*time.Second),
		Instance: ready.Instance,
	}); code != http.StatusNoContent {
		t.Fatalf("start: %d %s", code, body)
	}
	// Pull during the load, and acknowledge the intervals.
	var seq, sent, ok uint64
	for seq < 10 {
		code, body := o.ask(http.MethodGet,
			fmt.Sprintf("%s?after=%d&ack=%d&wait=2s&instance=%s", agent.PathIntervals, seq, seq, ready.Instance), nil)
		if code != http.StatusOK {
			t.Fatalf("intervals: %d %s", code, body)
		}
		for len(body) > 0 {
			length, n := encoding.Uvarint(body)
			iv, err := record.DecodeInterval(body[n : n+int(length)])
			if err != nil {
				t.Fatal(err)
			}
			body = body[n+int(length):]
			if uint64(iv.Index) != seq {
				t.Fatalf("interval %d came, want %d", iv.Index, seq)
			}
			seq++
			sent += iv.Ops[0].Sent
			ok += iv.Ops[0].OK
		}
	}
	// The second of two pods sends half of 400/s, for one second.
	if sent != 200 || ok != 200 {
		t.Errorf("%d requests were sent and %d answered, want 200", sent, ok)
	}
	o.await(p, agent.Finished)
	if code, body := o.ask(http.MethodPost, agent.PathRelease, nil); code != http.StatusNoContent {
		t.Fatalf("release: %d %s", code, body)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d, log\n%s", code, p.err.String())
	}
	for line := range strings.Lines(p.err.String()) {
		if !json.Valid([]byte(line)) || !strings.Contains(line, `"run":"run","pod":1`) {
			t.Errorf("the log holds %q", line)
		}
	}
	if strings.Contains(p.err.String(), o.token) {
		t.Error("the token is in the log")
	}
}

// An agent that Redis refuses reports the reason until it is released.
func TestAgentProcessFails(t *testing.T) {
	t.Parallel()
	p, o := startAgent(t, redistest.NewServer(t, redistest.Options{Password: "right"}).Address())
	if status := o.await(p, agent.Failed); status.Reason != "AuthenticationFailed" {
		t.Errorf("the status is %+v, want AuthenticationFailed", status)
	}
	if code, body := o.ask(http.MethodPost, agent.PathRelease, nil); code != http.StatusNoContent {
		t.Fatalf("release: %d %s", code, body)
	}
	if code := p.code(t); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
	}
}

// A pod that is terminated before its load began exits with an error.
func TestAgentProcessTerminated(t *testing.T) {
	t.Parallel()
	p, o := startAgent(t, redistest.Start(t).Address())
	o.await(p, agent.Ready)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := o.await(p, agent.Failed); status.Reason != agent.ReasonTerminated {
		t.Errorf("the status is %+v, want %s", status, agent.ReasonTerminated)
	}
	if code, body := o.ask(http.MethodPost, agent.PathRelease, nil); code != http.StatusNoContent {
		t.Fatalf("release: %d %s", code, body)
	}
	if code := p.code(t); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
	}
}

// An agent begins once its sidecar is ready, and ends it, also if its load fails.
func TestAgentProcessWithSidecar(t *testing.T) {
	t.Parallel()
	var ready, quits atomic.Int32
	sidecar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/quitquitquit":
			quits.Add(1)
		case ready.Load() == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(sidecar.Close)
	p, o := startAgent(t, redistest.NewServer(t, redistest.Options{Password: "right"}).Address(),
		"--sidecar-ready", sidecar.URL+"/healthz/ready", "--sidecar-quit", sidecar.URL+"/quitquitquit")
	o.await(p, agent.Preparing)
	ready.Store(1)
	o.await(p, agent.Failed)
	if code, body := o.ask(http.MethodPost, agent.PathRelease, nil); code != http.StatusNoContent {
		t.Fatalf("release: %d %s", code, body)
	}
	if code := p.code(t); code != cli.ExitFailed || quits.Load() != 1 {
		t.Errorf("exit code %d and %d requests to quit, want %d and 1", code, quits.Load(), cli.ExitFailed)
	}

	wrong := begin(t, nil, "agent", "--plan", "/nowhere", "--credentials", "/nowhere", "--sidecar-quit",
		sidecar.URL+"/quitquitquit")
	if code := wrong.code(t); code != 3 || quits.Load() != 2 {
		t.Errorf("exit code %d and %d requests to quit, want 3 and 2", code, quits.Load())
	}
}
