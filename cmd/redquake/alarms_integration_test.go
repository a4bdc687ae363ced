//go:build integration

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// ordinary are plain deployments, by name, each with the flags that address it.
var ordinary = map[string]func(*testing.T) []string{
	"standalone": func(t *testing.T) []string {
		return []string{"--address", redistest.NewServer(t, redistest.Options{}).Address()}
	},
	// in memory, as the disk of this machine may be the limit in truth
	"standalone with persistence": func(t *testing.T) []string {
		dir, err := os.MkdirTemp("/dev/shm", "redquake-test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return []string{
			"--address",
			redistest.NewServer(t, redistest.Options{
				Config: []string{"appendonly yes", "save 1 1", "dir " + dir, "latency-monitor-threshold 100"},
			}).Address(),
		}
	},
	"replication": func(t *testing.T) []string {
		return flagged("--address", redistest.NewReplication(t, 2, redistest.Options{}).Addresses())
	},
	"sentinel": func(t *testing.T) []string {
		return flagged("--sentinel", redistest.NewSentinel(t, 2, redistest.SentinelOptions{}).SentinelAddresses())
	},
	"cluster": func(t *testing.T) []string {
		return flagged("--address", redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{}).Addresses()[:1])
	},
}

func flagged(flag string, addresses []string) (flags []string) {
	for _, address := range addresses {
		flags = append(flags, flag, address)
	}
	return flags
}

// Ordinary loads of plain deployments, light ones and as many requests as there can be, have none of the limits that
// Redis itself gives a reason for, and no warning: however busy this machine is, those would be false.
func TestOrdinaryLoadsRaiseNoAlarm(t *testing.T) {
	for name, start := range ordinary {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T) {
				target := start(t)
				plain := []string{
					"load", "--duration", "3s", "--timeout", "1m", "--dial-timeout", "1m", "--command",
					"SET {key} {value}", "--command", "GET {key}", "-o", "json",
				}
				for _, load := range []struct {
					name  string
					flags []string
				}{
					{"light", []string{"--rate", "100"}},
					{"heavy", []string{"--users", "16"}},
					{"heavy with large values", []string{"--users", "8", "--value-bytes", "100000", "--keys", "100"}},
				} {
					p := begin(t, nil, slices.Concat(plain, target, load.flags)...)
					p.code(t)
					r := clitest.Result(t, p.out.String())
					if r.Total.OK == 0 || len(r.Errors) > 0 || len(r.Warnings) > 0 {
						t.Errorf("%s: %d successes, errors %+v, warnings %q", load.name, r.Total.OK, r.Errors, r.Warnings)
					}
					b := r.Bottleneck
					if b == nil {
						t.Errorf("%s: no bottleneck", load.name)
						continue
					}
					if c := bottleneck.Component(b.Component); c == bottleneck.Disk || c == bottleneck.Clients ||
						c == bottleneck.Memory || strings.Contains(b.Evidence, "connections were closed") {
						t.Errorf("%s: %+v", load.name, b)
					}
					t.Logf("%s: %d successes, %s: %s", load.name, r.Total.OK, b.Component, b.Evidence)
				}
			})
		})
	}
}
