//go:build integration

package engine

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// cpuTime is the CPU time of this process (RUSAGE_SELF) or of its ended children, in user and kernel mode.
func cpuTime(tb testing.TB, who int) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCost is the CPU time per request, SET of 32 bytes over 50 connections, beside redis-benchmark's in the same
// run.
func BenchmarkCost(b *testing.B) {
	const requests = 300_000
	for _, pipeline := range []int{1, 16} {
		b.Run(fmt.Sprintf("redquake/pipeline%d", pipeline), func(b *testing.B) {
			server := redistest.Start(b)
			var used, took time.Duration
			for b.Loop() {
				p := testPlan(server.Address())
				p.Client.Connections, p.Client.Pipeline = 50, pipeline
				p.Shape = plan.Shape{Users: 50, Requests: requests}
				p.Workload.Commands = p.Workload.Commands[:1]
				p.Workload.Keyspace.Keys = 100_000
				r, err := New(p, 0)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Prepare(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
				before, began := cpuTime(b, syscall.RUSAGE_SELF), time.Now()
				if err := r.Run(b.Context(), time.Now(), func(*record.Interval) {}); err != nil {
					b.Fatal(err)
				}
				used, took = used+cpuTime(b, syscall.RUSAGE_SELF)-before, took+time.Since(began)
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*requests)/1e3, "us-cpu/request")
			b.ReportMetric(float64(b.N*requests)/took.Seconds(), "requests/s")
		})
		b.Run(fmt.Sprintf("redis-benchmark/pipeline%d", pipeline), func(b *testing.B) {
			server := redistest.Start(b)
			var used, took time.Duration
			for b.Loop() {
				began := time.Now()
				c := exec.Command("redis-benchmark", "-p", fmt.Sprint(server.Port), "-c", "50", "-n", fmt.Sprint(requests), "-P",
					fmt.Sprint(pipeline),
					"-r", "100000", "-d", "32", "-t", "set", "-q")
				if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "requests per second") {
					b.Fatal(err, string(out))
				}
				used, took = used+c.ProcessState.UserTime()+c.ProcessState.SystemTime(), took+time.Since(began)
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*requests)/1e3, "us-cpu/request")
			b.ReportMetric(float64(b.N*requests)/took.Seconds(), "requests/s")
		})
	}
}

// TestMemoryOfManyConnections: a pod holds 6000 connections in less than 200 MiB. It is not parallel: memory of other
// tests would count.
func TestMemoryOfManyConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < 7000 {
		t.Fatalf("only %d files may be open: the test needs 7000", limit.Cur)
	}
	server := redistest.Start(t, "maxclients 7000")
	p := realPlan(server.Address())
	p.Client.Connections = 6000
	p.Shape = plan.Shape{Users: 6000, ThinkTime: 500 * time.Millisecond, Requests: 6000}
	o := runPlan(t, p)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB from the system; %s", m.Sys>>20, describe(o))
	if m.Sys > 200<<20 {
		t.Errorf("%d MiB, want at most 200", m.Sys>>20)
	}
	if o.sum.OK != 6000 || o.sum.Fail+o.sum.Unknown > 0 {
		t.Errorf("%s", describe(o))
	}
}
