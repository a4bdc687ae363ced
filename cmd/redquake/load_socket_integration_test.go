//go:build integration

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A unix socket is loaded like a port, with a login, that of a cluster's node is refused, as the others
// cannot be reached by it, and libraries connect by TCP.
func TestLoadOfASocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.NewServer(t, redistest.Options{Password: "geheim", Config: []string{"unixsocket " + socket}})
	for _, args := range [][]string{
		{socket},
		{"unix://" + socket, "--database", "3", "--command", "SET socket {seq}", "--verify-writes"},
		{"-s", socket, "--mode", "Multiplexed", "-P", "4"},
		{socket, "-t", "set,get,lpush"},
	} {
		code, out, stderr := runCommand(t, []string{loadflags.PasswordVariable + "=geheim"}, append([]string{
			"load", "--requests", "3000", "--rate", "1k", "--users", "4", "-o", "json", "--record",
			filepath.Join(t.TempDir(), "r"),
		}, args...)...)
		r := judged(t, code, out, stderr)
		if r.Total.OK != 3000 || r.Target.Topology != "Standalone" || r.Target.Addresses[0] != "unix://"+socket ||
			r.Redis == nil {
			t.Errorf("%q: %+v of %+v\n%s", args, r.Total, r.Target, stderr)
		}
	}
	if got := server.Do("exists", "socket"); got != int64(0) {
		t.Errorf("the key of database 3 is in database 0")
	}

	code, out, stderr := runCommand(t, nil, "load", socket+"x", "--wait", "0")
	if code != cli.ExitError || !strings.Contains(stderr, "TargetUnreachable: unix://"+socket+"x") {
		t.Errorf("no socket: exit code %d, %s%s", code, out, stderr)
	}
	code, out, stderr = runCommand(t, nil, "load", socket, "--driver", "GoRedis")
	if code != cli.ExitError || !strings.Contains(stderr, "driver GoRedis connects by TCP: set the host and port") {
		t.Errorf("a library: exit code %d, %s%s", code, out, stderr)
	}
	node := filepath.Join(t.TempDir(), "node.sock")
	redistest.StartNode(t, "unixsocket "+node)
	code, out, stderr = runCommand(t, nil, "load", node, "--requests", "5")
	if code != cli.ExitError ||
		!strings.Contains(stderr, "is that of one server of a Cluster, whose others it does not reach") {
		t.Errorf("a node of a cluster: exit code %d, %s%s", code, out, stderr)
	}
}

// The login of an URI is used, and nothing shows its password.
func TestLoadOfAnURI(t *testing.T) {
	t.Parallel()
	address := redistest.NewServer(t, redistest.Options{
		Password: "geheim",
		Users:    []string{"app on >ge/he@im ~* +@all"},
	}).Address()
	for uri, code := range map[string]int{
		"redis://:geheim@" + address + "/2":      cli.ExitOK,
		"redis://app:ge%2Fhe%40im@" + address:    cli.ExitOK,
		"redis://app:geheim@" + address:          cli.ExitError,
		"rediss://app:ge%2Fhe%40im@" + address:   cli.ExitError,
		"redis://app:ge%2Fhe%40im@127.0.0.1:1/0": cli.ExitError,
	} {
		report := filepath.Join(t.TempDir(), "report.html")
		got, out, stderr := runCommand(t, nil, "load", uri, "--requests", "100", "--users", "2", "-o", "json", "--wait", "0",
			"--report", report)
		if got != code && !(code == cli.ExitOK && strings.Contains(out, `"Inconclusive"`)) ||
			strings.Contains(out+stderr, "he@im") || strings.Contains(out+stderr, "geheim") ||
			strings.Contains(out+stderr, "%40") {
			t.Errorf("%s: exit code %d\n%s%s", uri, got, out, stderr)
		}
	}
}

// A database of a cluster is refused at once, though its topology is only found then.
func TestLoadOfADatabaseOfACluster(t *testing.T) {
	t.Parallel()
	node := redistest.StartNode(t)
	code, out, stderr := runCommand(t, nil, "load", node.Address(), "--database", "1", "--requests", "5")
	if code != cli.ExitError || strings.Contains(stderr, "waiting up to") ||
		!strings.Contains(stderr, "CommandInvalid: "+node.Address()+" rejects SELECT: ") ||
		!strings.Contains(stderr, "a cluster has only database 0") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
}
