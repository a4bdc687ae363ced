package workload

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// api is a server that answers /N with status N, hangs on /hang, and closes the connection on /break; it records the
// requests.
type api struct {
	*httptest.Server
	connections atomic.Int64
	mu          sync.Mutex
	requests    []string // method, path, body, header X-User, host
}

func startAPI(t *testing.T) *api {
	a := &api{}
	released := make(chan struct{})
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.requests = append(a.requests,
			fmt.Sprintf("%s %s %s user=%s host=%s", r.Method, r.URL, body, r.Header.Get("X-User"), r.Host))
		a.mu.Unlock()
		switch status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/")); {
		case r.URL.Path == "/hang":
			<-released
		case r.URL.Path == "/break":
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
		case r.URL.Path == "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		case status > 0:
			w.Header().Set("Location", "/200")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "12345")
		}
	}))
	a.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			a.connections.Add(1)
		}
	}
	a.Start()
	t.Cleanup(func() { close(released); a.Close() })
	return a
}

func (a *api) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[len(a.requests)-1]
}

// remote returns the workload of a spec that does not use Redis connections.
func remote(t *testing.T, s plan.Workload, o RemoteOptions) Remote {
	t.Helper()
	if s.Keyspace.Keys == 0 {
		s.Keyspace = uniform(10)
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	o.Connections = max(o.Connections, 1)
	w, err := NewRemote(&s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func TestHTTPOutcomes(t *testing.T) {
	a := startAPI(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	tests := []struct {
		url     string
		want    Result
		status  int // of the tallies; 0 = no answer
		timeout time.Duration
	}{
		{a.URL + "/200", Result{BytesIn: 5}, 2, 0},
		{a.URL + "/302", Result{BytesIn: 5}, 3, 0},
		{a.URL + "/404", Result{Outcome: Fail, Class: record.ClassOther, BytesIn: 5}, 4, 0},
		{a.URL + "/500", Result{Outcome: Fail, Class: record.ClassOther, BytesIn: 5}, 5, 0},
		{a.URL + "/hang", Result{Outcome: Unknown, Class: record.ClassTimeout}, 0, 100 * time.Millisecond},
		{a.URL + "/break", Result{Outcome: Unknown, Class: record.ClassReset}, 0, 0},
		{a.URL + "/half", Result{Outcome: Unknown, Class: record.ClassReset, BytesIn: 4}, 0, 0},
		{"http://" + closed.Addr().String() + "/", Result{Outcome: Fail, Class: record.ClassRefused}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.url[strings.LastIndex(tt.url, "/"):], func(t *testing.T) {
			w := remote(t, plan.Workload{HTTP: &plan.HTTP{URL: tt.url, Method: "POST"}}, RemoteOptions{})
			tally := make([]uint64, len(w.Tallies()))
			ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(tt.timeout, 10*time.Second))
			defer cancel()
			if got := w.Caller(0, 1).Call(ctx, 0, 1, tally); got != tt.want {
				t.Errorf("the result is %+v, want %+v", got, tt.want)
			}
			for class := range 5 {
				want := uint64(0)
				if tt.status == class+1 {
					want = 1
				}
				if tally[class] != want {
					t.Errorf("tally %s is %d, want %d", w.Tallies()[class], tally[class], want)
				}
			}
		})
	}
	for _, r := range a.requests {
		if strings.Contains(r, " /200 ") != (r == a.requests[0]) {
			t.Errorf("the redirection was followed: %s", r)
		}
	}
}

func TestHTTPFillsPlaceholders(t *testing.T) {
	a := startAPI(t)
	w := remote(t, plan.Workload{HTTP: &plan.HTTP{
		URL: a.URL + "/200?id={int}&key={key}", Method: "POST", Body: `{"user": {user}, "seq": {seq}}`,
		Headers: []plan.Header{{Name: "X-User", Value: "u{user}"}, {Name: "Host", Value: "shop.example"}}, KeepAlive: true,
	}, Keyspace: uniform(1)}, RemoteOptions{})
	if o := w.Operations(); len(o) != 1 || o[0].Name != "post" || o[0].ReadOnly {
		t.Errorf("operations %v", o)
	}
	c, tally := w.Caller(0, 1), make([]uint64, len(w.Tallies()))
	for seq := range 2 {
		c.Call(context.Background(), c.Pick(), 42, tally)
		if want := fmt.Sprintf(`POST /200?id=0&key=rq:0 {"user": 42, "seq": %d} user=u42 host=shop.example`,
			seq); a.last() != want {
			t.Errorf("the request is\n%s, want\n%s", a.last(), want)
		}
	}
}

func TestHTTPKeepsConnections(t *testing.T) {
	for _, keep := range []bool{true, false} {
		a := startAPI(t)
		w := remote(t, plan.Workload{HTTP: &plan.HTTP{URL: a.URL + "/200", KeepAlive: keep}}, RemoteOptions{Connections: 4})
		sums := make([][]uint64, 4)
		var all sync.WaitGroup
		for i := range sums {
			sums[i] = make([]uint64, len(w.Tallies()))
			c := w.Caller(int64(i), 4)
			all.Go(func() {
				for range 25 {
					if r := c.Call(context.Background(), c.Pick(), 1, sums[i]); r.Outcome != OK {
						t.Errorf("the result is %+v", r)
					}
				}
			})
		}
		all.Wait()
		total := make([]uint64, len(w.Tallies()))
		for _, s := range sums {
			for i, n := range s {
				total[i] += n
			}
		}
		// With keep-alive a caller may use another connection while its previous one is returned to the pool: a few more than
		// 4, never 100.
		if got := total[plan.TallyConnects]; !keep && (got != 100 || a.connections.Load() != 100) ||
			keep && (got < 1 || got > 20) {
			t.Errorf("keep-alive %v: %d connections were counted, the server saw %d", keep, got, a.connections.Load())
		}
		if total[plan.TallyStatus1xx+1] != 100 || total[plan.TallyConnectMicros] == 0 ||
			total[plan.TallyFirstByteMicros] == 0 {
			t.Errorf("keep-alive %v: tallies %v", keep, total)
		}
	}
}

// The parts of the latency are separate: the server waits for 50 ms and then sends for 500 ms.
func TestHTTPSplitsLatency(t *testing.T) {
	const pause = 50 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(pause)
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		time.Sleep(10 * pause)
		_, _ = io.WriteString(w, "last")
	}))
	defer s.Close()
	w := remote(t, plan.Workload{HTTP: &plan.HTTP{URL: s.URL}}, RemoteOptions{})
	tally := make([]uint64, len(w.Tallies()))
	begin := time.Now()
	r := w.Caller(0, 1).Call(context.Background(), 0, 1, tally)
	total := time.Since(begin)
	first := time.Duration(tally[plan.TallyFirstByteMicros]) * time.Microsecond
	body := time.Duration(tally[plan.TallyBodyMicros]) * time.Microsecond
	connect := time.Duration(tally[plan.TallyConnectMicros]) * time.Microsecond
	if r.BytesIn != 9 || first < pause || body < pause || connect+first+body > total {
		t.Errorf("%d bytes, connect %s, first byte %s, body %s of %s", r.BytesIn, connect, first, body, total)
	}
}

func TestHTTPPrepare(t *testing.T) {
	a := startAPI(t)
	if err := remote(t, plan.Workload{HTTP: &plan.HTTP{URL: a.URL + "/{int}"}},
		RemoteOptions{}).Prepare(context.Background()); err != nil {
		t.Error(err)
	}
	if len(a.requests) > 0 {
		t.Errorf("Prepare sent %v", a.requests)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	err = remote(t, plan.Workload{HTTP: &plan.HTTP{URL: "http://" + closed.Addr().String()}},
		RemoteOptions{}).Prepare(context.Background())
	if err == nil || !strings.Contains(err.Error(), "the API at 127.0.0.1:") {
		t.Errorf("an API that is not there: %v", err)
	}
}
