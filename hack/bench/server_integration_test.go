//go:build integration

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestDeploy: what each kind of case loads is there, filled, on its cores, and gone afterwards.
func TestDeploy(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	on := cores{servers: allowed[:1], tool: allowed[0]}
	for _, c := range matching(allCases(1000, 1000),
		"SET, pipeline 1; SET, pipeline 1, TLS; SET, pipeline 1, cluster of 3") {
		t.Run(c.name, func(t *testing.T) {
			d, err := deploy(t.Context(), &c, on)
			if err != nil {
				t.Fatal(err)
			}
			defer d.stop()
			if len(d.pids) != max(1, c.shards) || (c.tls != nil) != c.secured || c.address == "" || c.folder == "" {
				t.Errorf("%d servers, %+v", len(d.pids), c)
			}
			if err := d.fill(t.Context(), "rq:%d", 1, usualBytes); err != nil {
				t.Fatal(err)
			}
			d.client.Get(t.Context(), "rq:0")
			if n, err := d.misses(t.Context()); err != nil || n != 1 {
				t.Errorf("%d misses, %v; want 1", n, err)
			}
			for _, pid := range d.pids {
				if got := field(fmt.Sprintf("/proc/%d/status", pid), "Cpus_allowed_list"); got != fmt.Sprint(allowed[0]) {
					t.Errorf("a server may use %s, not only %d", got, allowed[0])
				}
			}
			d.stop()
			if slices.ContainsFunc(d.servers, (*redistest.Server).Running) {
				t.Error("a server runs after the end")
			}
		})
	}
}

// TestDeployFails: a server that does not start is an error, and nothing stays.
func TestDeployFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if d, err := deploy(t.Context(), &work{}, cores{servers: []int{0}, tool: 0}); err == nil {
		d.stop()
		t.Error("a server without a program was started")
	}
}

// TestFloor: the floor sends what it was asked to, and nothing else, and fails on an error reply.
func TestFloor(t *testing.T) {
	server := redistest.Start(t)
	args := func(requests, pipeline int, get bool) []string {
		return []string{
			"-port", fmt.Sprint(server.Port), "-requests", fmt.Sprint(requests), "-connections", "5", "-pipeline",
			fmt.Sprint(pipeline), "-get=" + fmt.Sprint(get), "-value-bytes", "100",
		}
	}
	calls := func(command string) (n int) {
		text, err := server.Client().Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(text, "cmdstat_"+command+":calls=")
		_, _ = fmt.Sscanf(rest, "%d", &n)
		return n
	}
	for _, pipeline := range []int{1, 16} {
		before := calls("set")
		if err := runFloor(t.Context(), args(8000, pipeline, false)); err != nil {
			t.Fatal(err)
		}
		if n := calls("set") - before; n != 8000 {
			t.Errorf("pipeline %d: %d SETs, want 8000", pipeline, n)
		}
	}
	server.Do("FLUSHALL")
	server.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	if err := runFloor(t.Context(), args(100, 1, false)); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
		t.Errorf("of writes that fail it says %v", err)
	}
	if err := runFloor(t.Context(), args(100, 1, true)); err == nil {
		t.Error("reads of keys that do not exist were taken for values")
	}
}
