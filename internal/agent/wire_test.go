package agent_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/agenttest"
	"github.com/redquake/redquake/internal/testing/memnet"
)

const step = 5 * time.Millisecond

// wire is a client of one agent.
type wire struct {
	t       *testing.T
	network *memnet.Network
	base    string
	token   string
	client  *http.Client
	agent   *agenttest.Agent
}

func serve(t *testing.T, runner *agenttest.Runner, change func(*agent.Config)) *wire {
	t.Helper()
	runner.Step, runner.Ops = step, 2
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	config := agent.Config{Plan: &plan.Plan{Run: "run", Pods: 1, Interval: step}, Runner: runner, Linger: 10 * time.Second}
	if change != nil {
		change(&config)
	}
	network := memnet.New()
	a := agenttest.Serve(t, network, "pod", credentials, config)
	secure, err := agent.ClientTLS(credentials.CertificatePEM)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: network.Dial, TLSClientConfig: secure}
	t.Cleanup(transport.CloseIdleConnections)
	return &wire{
		t,
		network,
		"https://" + a.Address,
		credentials.Token,
		&http.Client{Transport: transport, Timeout: 10 * time.Second},
		a,
	}
}

func (w *wire) do(method, path, body string) (int, []byte, http.Header) {
	w.t.Helper()
	request, err := http.NewRequest(method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := w.client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, data, response.Header
}

func (w *wire) status() agent.Status {
	w.t.Helper()
	code, data, _ := w.do("GET", agent.PathStatus, "")
	var status agent.Status
	if err := json.Unmarshal(data, &status); code != 200 || err != nil {
		w.t.Fatalf("status: %d %s %v", code, data, err)
	}
	return status
}

// until polls the status until it is in the state.
func (w *wire) until(state agent.State) agent.Status {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		status := w.status()
		if status.State == state {
			return status
		}
		if time.Now().After(end) {
			w.t.Fatalf("is %+v, waited for %s", status, state)
		}
	}
}

// start starts the load soon, and returns the instant.
func (w *wire) start() int64 {
	w.t.Helper()
	at := w.until(agent.Ready).Now + int64(30*time.Millisecond)
	w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d}`, at), 204)
	return at
}

func (w *wire) want(method, path, body string, code int) string {
	w.t.Helper()
	got, data, _ := w.do(method, path, body)
	if got != code {
		w.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, got, data, code)
	}
	return string(data)
}

func (w *wire) pull(query string) ([]record.Interval, http.Header) {
	w.t.Helper()
	code, data, header := w.do("GET", agent.PathIntervals+"?"+query, "")
	if code != 200 {
		w.t.Fatalf("pull %s: %d %s", query, code, data)
	}
	var list []record.Interval
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		iv, err := record.DecodeInterval(data[n : n+int(length)])
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, iv)
		data = data[n+int(length):]
	}
	return list, header
}

// served waits for the end of Serve.
func (w *wire) served() error {
	<-w.agent.Done
	return w.agent.Err
}
