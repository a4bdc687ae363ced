//go:build integration

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A primary that begins to follow its own replica while the sentinels still name it refuses all writes: the result says
// so, with who names what. A failover by the sentinels, which also has requests refused with READONLY, is no reason.
func TestSentinelsThatNameAReplicaAreAWarning(t *testing.T) {
	for _, tt := range []struct {
		name      string
		options   redistest.SentinelOptions
		disturb   func(*redistest.Sentinel)
		isWarning bool
	}{
		{"a replica", redistest.SentinelOptions{DownAfter: time.Hour}, func(set *redistest.Sentinel) {
			set.Primary.Do("replicaof", "127.0.0.1", fmt.Sprint(set.Replicas[0].Port))
		}, true},
		{"a failover", redistest.SentinelOptions{}, func(set *redistest.Sentinel) {
			set.Sentinels[0].Do("sentinel",
				"failover", redistest.MasterName)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := redistest.NewSentinel(t, 1, tt.options)
			args := []string{
				"load", "--rate", "200", "--duration", "20s", "--warm-up", "0s", "--command", "SET {key} {value}",
				"-o", "json",
			}
			for _, address := range set.SentinelAddresses() {
				args = append(args, "--sentinel", address)
			}
			p := begin(t, nil, args...)
			awaitCommands(t, set.Primary)
			tt.disturb(set)
			p.code(t)
			r := clitest.Result(t, p.out.String())
			got := strings.Join(r.Warnings, "\n")
			want := "name " + set.Primary.Address() + "). Compare SENTINEL GET-MASTER-ADDR-BY-NAME"
			if (got != "") != tt.isWarning || tt.isWarning && !strings.Contains(got, want) {
				t.Errorf("warnings %q, want %v: %s; errors %+v", got, tt.isWarning, want, r.Errors)
			}
			t.Log(got)
		})
	}
}
