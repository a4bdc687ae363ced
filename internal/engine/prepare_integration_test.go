//go:build integration

package engine

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Password: "secret", Users: []string{"app on >hunter2 ~* +@all"}})
	open := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []int{2, 3} {
		planTo := func(address string) *plan.Plan {
			p := realPlan(address)
			p.Client.Protocol = protocol
			p.Shape.Duration = 200 * time.Millisecond
			return p
		}
		p := planTo(server.Address())
		p.Target.PasswordFile = file
		p.Target.Database = 3
		if o := runPlan(t, p); o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("RESP%d with a password file: %s", protocol, describe(o))
		}
		p = planTo(server.Address())
		p.Target.Username = "app"
		if o := runPlan(t, p, WithPassword("hunter2")); o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
			t.Errorf("RESP%d with a user: %s", protocol, describe(o))
		}
		wantReason(t, planTo(server.Address()), plan.AuthenticationFailed, "requires a password")
		wantReason(t, planTo(server.Address()), plan.AuthenticationFailed, "WRONGPASS", WithPassword("wrong"))
		wantReason(t, planTo(open.Address()), plan.AuthenticationFailed, "has none configured", WithPassword("secret"))
		missing := planTo(server.Address())
		missing.Target.PasswordFile = file + ".missing"
		wantReason(t, missing, plan.AuthenticationFailed, "failed to read the password")
	}
	server.Do("auth", "secret")
}

func TestPrepareRefusesInvalidCommands(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{Users: []string{"reader on nopass ~* +@read +@connection +info"}})
	p := realPlan(server.Address())
	p.Target.Username = "reader"
	wantReason(t, p, plan.PermissionDenied, `"set"`, WithPassword("any"))
	for _, words := range [][]string{{"FLY", "{key}"}, {"GET"}, {"SET", "{key}", "x", "NONSENSE"}} {
		p := realPlan(server.Address())
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{Name: "odd one", Weight: 1, Words: words})
		wantReason(t, p, plan.CommandInvalid, `"odd one" (`+words[0]+`)`)
	}
	p = realPlan(server.Address())
	p.Probe.Words = []string{"SET", "x"}
	wantReason(t, p, plan.CommandInvalid, `"probe"`)
	p = realPlan(server.Address())
	p.Target.Database = 99
	wantReason(t, p, plan.CommandInvalid, "SELECT")
}

// TestLoadingIsWaitedFor: Prepare returns once the data is loaded. The server loads longer than a dial may take.
func TestLoadingIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.LoadSlowly(2000, time.Second)
	server.Launch()
	await.Until(t, "the server listens", func() error {
		c, err := net.Dial("tcp", server.Address())
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	p := realPlan(server.Address())
	p.Shape = plan.Shape{Users: 10, Requests: 100}
	if o := runPlan(t, p); o.sum.OK == 0 || o.sum.Fail > 0 {
		t.Errorf("%s", describe(o))
	}
	if n := server.Do("dbsize").(int64); n < 2000 {
		t.Errorf("the load began with %d of 2000 keys", n)
	}
}

// TestLoadingUnderLoad: a restarted server that loads its data answers LOADING, which is a failure; the gap lasts until
// it serves.
func TestLoadingUnderLoad(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := realPlan(server.Address())
	w := watch(t, p)
	w.until("the load runs", serving)
	server.LoadSlowly(1000, time.Second)
	server.Launch()
	down := w.until("LOADING is a failure of load and probe, and nothing succeeds", func(iv *record.Interval) bool {
		return sampleErrors(iv, record.ClassLoading) > 0 && iv.Probe.Errors[record.ClassLoading] > 0 && iv.FirstOK < 0
	})
	w.until("the server serves", serving)
	o := w.end()
	addsUp(t, o)
	covers(t, "load", o.gaps, down, down+int64(p.Interval))
}

func TestErrorRepliesAreFailures(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("rpush", "list", "x")
	p := realPlan(server.Address())
	p.Workload.Commands = []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "list"}}}
	p.Shape = plan.Shape{Users: 16, Requests: 5000}
	for _, pipeline := range []int{1, 16} {
		p.Client.Pipeline = pipeline
		o := runPlan(t, p)
		if o.sum.OK != 0 || o.sum.Fail != o.sum.Sent || o.sum.Errors[record.ClassOther] != o.sum.Fail || o.sum.Fail == 0 {
			t.Errorf("pipeline %d: %s", pipeline, describe(o))
		}
	}
}

func TestPrefillIsSplitOverPods(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := realPlan(server.Address())
	p.Pods = 3
	p.Workload.Keyspace = plan.Keyspace{
		Prefix:       "fill:",
		Keys:         10_001,
		Distribution: plan.Uniform,
		Prefill:      true,
		TTL:          time.Hour,
	}
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
		if got, want := server.Do("dbsize").(int64), []int64{3334, 6668, 10_001}[pod]; got != want {
			t.Errorf("after pod %d there are %d keys, want %d", pod, got, want)
		}
		if s := r.Server(); s == nil || s.Mode != "standalone" || s.Role != "master" {
			t.Errorf("the first reading of INFO is %+v", s)
		}
	}
	for _, key := range []string{"fill:0", "fill:3334", "fill:10000"} {
		if size := server.Do("strlen", key).(int64); size != 32 {
			t.Errorf("%s has %d bytes, want 32", key, size)
		}
		if ttl := server.Do("ttl", key).(int64); ttl < 3500 || ttl > 3600 {
			t.Errorf("the TTL of %s is %d s, want an hour", key, ttl)
		}
	}
	// how many are there by then hangs on the machine
	if !strings.HasPrefix(said[1], "prefilling ") || !strings.HasSuffix(said[1], " of 3,334 keys") {
		t.Errorf("got progress %q", said)
	}
}

func TestPrefillWithoutMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "maxmemory 2mb")
	p := realPlan(server.Address())
	p.Workload.Keyspace.Keys, p.Workload.Keyspace.Prefill = 100_000, true
	wantReason(t, p, plan.PrefillFailed, "OOM")
}

// tracking is a proxy that switches client tracking on for each connection, after its HELLO.
func tracking(t *testing.T, server string) string {
	return tcptest.Proxy(t, server, func(to, from net.Conn, answers bool) {
		if answers {
			hello := make([]byte, 64<<10)
			n, err := from.Read(hello)
			if err == nil {
				_, err = from.Write(resp.AppendCommand(nil, "CLIENT", "TRACKING", "ON", "BCAST"))
			}
			if err == nil {
				_, err = io.ReadFull(from, make([]byte, len("+OK\r\n")))
			}
			if err == nil {
				_, err = to.Write(hello[:n])
			}
			if err != nil {
				return
			}
		}
		_, _ = io.Copy(to, from)
	})
}

// TestPushesAreNotCountedAsReplies: with client tracking on, invalidations come between replies.
func TestPushesAreNotCountedAsReplies(t *testing.T) {
	t.Parallel()
	p := realPlan(tracking(t, redistest.Start(t).Address()))
	p.Workload.Keyspace.Keys = 10
	p.Client.Pipeline = 8
	p.Shape = plan.Shape{Users: 10, Requests: 8000}
	o := runPlan(t, p)
	if o.sum.OK != o.sum.Sent || o.sum.OK == 0 {
		t.Errorf("%s", describe(o))
	}
	if o.sum.BytesIn < 20*o.sum.OK {
		t.Errorf("%d bytes for %d replies: no push was received", o.sum.BytesIn, o.sum.OK)
	}
	if v := resp.AppendCommand(nil, "PING"); len(v) != 14 {
		t.Errorf("PING is %q", v)
	}
}
