//go:build integration

package load

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/resp"
	"github.com/redquake/redquake/internal/sample"
)

func TestPasswords(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret", "--user", "app", "on", ">hunter2", "~*", "+@all")
	open := startRedis(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []int{2, 3} {
		planTo := func(address string) *plan.Plan {
			p := testPlan(address)
			p.Client.Protocol = protocol
			p.Shape.Duration = 200 * time.Millisecond
			return p
		}
		p := planTo(server.address())
		p.Target.PasswordFile = file
		p.Target.Database = 3
		if o := runPlan(t, p); o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("RESP%d with a password file: %s", protocol, describe(o))
		}
		p = planTo(server.address())
		p.Target.Username = "app"
		if o := runPlan(t, p, WithPassword("hunter2")); o.sum.OK == 0 || o.probe.OK == 0 {
			t.Errorf("RESP%d with a user: %s", protocol, describe(o))
		}
		wantReason(t, planTo(server.address()), plan.AuthenticationFailed, "asks for a password")
		wantReason(t, planTo(server.address()), plan.AuthenticationFailed, "WRONGPASS", WithPassword("wrong"))
		wantReason(t, planTo(open.address()), plan.AuthenticationFailed, "has none configured", WithPassword("secret"))
		missing := planTo(server.address())
		missing.Target.PasswordFile = file + ".missing"
		wantReason(t, missing, plan.AuthenticationFailed, "cannot be read")
	}
	if v := server.do("AUTH", "secret"); v.IsError() {
		t.Fatal(v.Text)
	}
}

func TestCommandsThatCannotWork(t *testing.T) {
	server := startRedis(t, "--user", "reader", "on", "nopass", "~*", "+@read", "+@connection", "+info")
	p := testPlan(server.address())
	p.Target.Username = "reader"
	wantReason(t, p, plan.PermissionDenied, `"set"`, WithPassword("any"))
	for _, words := range [][]string{{"FLY", "{key}"}, {"GET"}, {"SET", "{key}", "x", "NONSENSE"}} {
		p := testPlan(server.address())
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{Name: "odd one", Weight: 1, Words: words})
		wantReason(t, p, plan.CommandInvalid, `"odd one" (`+words[0]+`)`)
	}
	p = testPlan(server.address())
	p.Probe.Words = []string{"SET", "x"}
	wantReason(t, p, plan.CommandInvalid, `"probe"`)
	p = testPlan(server.address())
	p.Target.Database = 99
	wantReason(t, p, plan.CommandInvalid, "SELECT")
}

func TestWhatIsNoRedis(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	silent := answering(t, func(net.Conn) {})
	garbage := answering(t, func(c net.Conn) { _, _ = c.Write([]byte("\x00\x01garbage")); _ = c.Close() })
	closed := net.JoinHostPort("127.0.0.1", fmt.Sprint(freePort(t)))
	tests := []struct {
		name, address string
		protocol      int
		reason        plan.Reason
		words         string
	}{
		{"a web server", web.Listener.Addr().String(), 3, plan.NotRedis, "HTTP/1.1 400"},
		{"nothing in RESP2", silent, 2, plan.NotRedis, silent + " accepts connections, but answers nothing"},
		{"nothing in RESP3", silent, 3, plan.NotRedis, silent + " accepts connections, but answers nothing"},
		{"garbage", garbage, 3, plan.NotRedis, "garbage"},
		{"a closed port", closed, 3, plan.TargetUnreachable, closed + " does not serve within 5s"},
		{"no such name", "no-such-name.invalid:6379", 3, plan.TargetUnreachable, "no-such-name.invalid"},
		{"a black hole", blackHole(t), 3, plan.TargetUnreachable, "no answer in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most wait for the dial budget
			p := testPlan(tt.address)
			p.Client.Protocol, p.Client.DialTimeout = tt.protocol, 200*time.Millisecond
			wantReason(t, p, tt.reason, tt.words)
		})
	}
}

// answering is the address of a listener that hands every connection to serve and leaves it open.
func answering(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// slowLoading stops the server and starts it again so that it loads n keys for about d.
func (r *redisProcess) slowLoading(n int, d time.Duration) {
	r.t.Helper()
	if v := r.do("DEBUG", "POPULATE", fmt.Sprint(n), "filled", "100"); v.IsError() {
		r.t.Fatal(v.Text)
	}
	if v := r.do("SAVE"); v.IsError() {
		r.t.Fatal(v.Text)
	}
	r.kill()
	r.args = append(r.args, "--key-load-delay", fmt.Sprint(d.Microseconds()/int64(n)), "--loading-process-events-interval-bytes", "1024")
}

func TestLoadingIsWaitedFor(t *testing.T) {
	server := startRedis(t, "--enable-debug-command", "yes")
	server.slowLoading(2000, time.Second)
	server.start()
	if v := server.do("PING"); !strings.HasPrefix(v.Text, "LOADING") {
		t.Fatalf("the server is not loading: %+v", v)
	}
	p := testPlan(server.address())
	p.Shape.Duration = 200 * time.Millisecond
	began := time.Now()
	o := runPlan(t, p)
	if o.sum.OK == 0 || o.sum.Fail > 0 || time.Since(began) < 700*time.Millisecond {
		t.Errorf("after %s: %s", time.Since(began), describe(o))
	}
}

func TestLoadingUnderLoad(t *testing.T) {
	server := startRedis(t, "--enable-debug-command", "yes")
	p := testPlan(server.address())
	p.Shape.Duration = 2 * time.Second
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(500 * time.Millisecond)))
	server.slowLoading(1000, 500*time.Millisecond)
	server.launch()
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	addsUp(t, o)
	if o.sum.Errors[sample.ClassLoading] < 100 || o.probe.Errors[sample.ClassLoading] < 20 {
		t.Errorf("want LOADING replies counted as failures: %s", describe(o))
	}
	if g := longest(o.gaps); g.To-g.From < int64(450*time.Millisecond) {
		t.Errorf("the gap is %s, as if LOADING were a success", time.Duration(g.To-g.From))
	}
}

func TestErrorRepliesAreNoSuccesses(t *testing.T) {
	server := startRedis(t)
	if v := server.do("RPUSH", "list", "x"); v.IsError() {
		t.Fatal(v.Text)
	}
	p := testPlan(server.address())
	p.Workload.Commands = []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "list"}}}
	p.Shape.Duration = 500 * time.Millisecond
	for _, pipeline := range []int{1, 16} {
		p.Client.Pipeline = pipeline
		o := runPlan(t, p)
		if o.sum.OK != 0 || o.sum.Fail != o.sum.Sent || o.sum.Errors[sample.ClassOther] != o.sum.Fail || o.sum.Fail < 1000 {
			t.Errorf("pipeline %d: %s", pipeline, describe(o))
		}
		if len(o.gaps) != 1 || !o.gaps[0].Open || o.gaps[0].From != 0 || o.intervals[2].FirstOK != -1 {
			t.Errorf("pipeline %d: gaps %v, want one over the whole run", pipeline, o.gaps)
		}
	}
}

func TestRequestsEndTheRun(t *testing.T) {
	server := startRedis(t)
	for name, change := range map[string]func(*plan.Plan){
		"closed":    func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007} },
		"pipelined": func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007}; p.Client.Pipeline = 16 },
		"open":      func(p *plan.Plan) { p.Shape = plan.Shape{Rate: 20_000, Requests: 10_007} },
		"bounded":   func(p *plan.Plan) { p.Shape = plan.Shape{Users: 10, Requests: 10_007, Duration: time.Minute} },
	} {
		p := testPlan(server.address())
		change(p)
		server.do("CONFIG", "RESETSTAT")
		o := runPlan(t, p)
		if o.sum.OK != 10_007 || o.sum.Due != 10_007 || o.elapsed > 20*time.Second {
			t.Errorf("%s: %s after %s", name, describe(o), o.elapsed)
		}
		served := server.counter("cmdstat_set:calls=") + server.counter("cmdstat_get:calls=")
		// The probe's commands are sets as well, and each command of the workload was tried once.
		if want := o.sum.Sent + o.probe.Sent + 3; served != want {
			t.Errorf("%s: the server counts %d commands, want %d", name, served, want)
		}
	}
}

// counter is the number after prefix in INFO commandstats.
func (r *redisProcess) counter(prefix string) uint64 {
	r.t.Helper()
	_, rest, _ := strings.Cut(r.do("INFO", "commandstats").Text, prefix)
	var n uint64
	if _, err := fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &n); err != nil {
		r.t.Fatalf("%s: %v", prefix, err)
	}
	return n
}

func TestPrefillIsSplitOverPods(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Pods = 3
	p.Workload.Keyspace = plan.Keyspace{Prefix: "fill:", Keys: 10_001, Distribution: plan.Uniform, Prefill: true, TTL: time.Hour}
	p.Workload.Commands = p.Workload.Commands[1:]
	p.Probe = plan.Probe{}
	var said []string
	for pod := range 3 {
		r, err := New(p, pod)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Prepare(t.Context(), func(s string) { said = append(said, s) }); err != nil {
			t.Fatal(err)
		}
		r.close()
		if got, want := server.do("DBSIZE").Text, fmt.Sprint([]int{3334, 6668, 10_001}[pod]); got != want {
			t.Errorf("after pod %d there are %s keys, want %s", pod, got, want)
		}
		if s := r.Server(); s == nil || s.Mode != "standalone" || s.Role != "master" {
			t.Errorf("the first reading of INFO is %+v", s)
		}
	}
	for _, key := range []string{"fill:0", "fill:3334", "fill:10000"} {
		if size := server.do("STRLEN", key).Text; size != "32" {
			t.Errorf("%s has %s bytes, want 32", key, size)
		}
		if ttl := server.do("TTL", key).Text; len(ttl) != 4 || ttl < "3500" || ttl > "3600" {
			t.Errorf("%s lives for %s s, want an hour", key, ttl)
		}
	}
	if !strings.HasPrefix(said[1], "prefilling 0 of 3,334 keys") {
		t.Errorf("it said %q", said)
	}
}

func TestPrefillWithoutMemory(t *testing.T) {
	server := startRedis(t, "--maxmemory", "2mb")
	p := testPlan(server.address())
	p.Workload.Keyspace.Keys, p.Workload.Keyspace.Prefill = 100_000, true
	wantReason(t, p, plan.PrefillFailed, "OOM")
}

// TestPushesAreNoReplies: with client tracking on, invalidations come between replies.
func TestPushesAreNoReplies(t *testing.T) {
	server := startRedis(t)
	p := testPlan(server.address())
	p.Workload.Keyspace.Keys = 10
	p.Workload.Commands = append(p.Workload.Commands, plan.Command{Name: "track", Weight: 1, Words: []string{"CLIENT", "TRACKING", "ON", "BCAST"}})
	p.Client.Pipeline = 8
	p.Shape.Duration = 500 * time.Millisecond
	o := runPlan(t, p)
	if o.sum.OK != o.sum.Sent || o.sum.OK < 1000 {
		t.Errorf("%s", describe(o))
	}
	if o.sum.BytesIn < 20*o.sum.OK {
		t.Errorf("%d bytes for %d replies: no push came", o.sum.BytesIn, o.sum.OK)
	}
	if v := resp.AppendCommand(nil, "PING"); len(v) != 14 {
		t.Errorf("PING is %q", v)
	}
}
