//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestReadOnlyLoadWritesNothing: a load of reads, its probe included, runs as a user who may only read, on a replica
// that refuses writes, and changes nothing.
func TestReadOnlyLoadWritesNothing(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	redistest.Each(t, func(t *testing.T) {
		server := redistest.Start(t)
		server.Do("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read")
		reads := func(address string) {
			_, out, stderr := runCommand(t, nil, "load", "--address", address, "--topology", "Standalone", "--rate", "20",
				"--duration", "1s", "--command", "GET {key}", "--username", "reader", "--password-file", password, "-o", "json")
			if out == "" {
				t.Fatal(stderr)
			}
			if r := clitest.Result(t, out); r.Total.OK != 20 || r.ProbeGap != nil && r.ProbeGap.Open {
				t.Errorf("%d requests succeeded, want 20; the longest gap of the probe is %+v", r.Total.OK, r.ProbeGap)
			}
		}
		reads(server.Address())
		if n := server.Calls("set"); n != 0 {
			t.Errorf("the server received %d SETs", n)
		}
		if keys := server.Do("DBSIZE"); keys != int64(0) {
			t.Errorf("%v keys are left", keys)
		}
		server.Do("REPLICAOF", "127.0.0.1", "1") // its primary does not answer
		reads(server.Address())
	})
}
