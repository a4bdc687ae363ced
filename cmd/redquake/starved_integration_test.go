//go:build integration && linux

package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthGeneratorBesideBusyPrograms runs a closed loop on one core, alone and beside three busy programs. Whatever
// else the machine does: the load beside them is in doubt, or its bounds contain what the load alone had; and it does
// not miss for certain what the load alone has reached with ease.
func TestTruthGeneratorBesideBusyPrograms(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{})
	core := ownCore(t)
	run := func(busy, atLeast int) *result.Load {
		var programs []*exec.Cmd
		onCore(t, core, func() {
			for range busy {
				c := exec.Command("sh", "-c", "while :; do :; done")
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				programs = append(programs, c)
			}
		})
		defer func() {
			for _, c := range programs {
				_ = c.Process.Kill()
				_ = c.Wait()
			}
		}()
		var p *process
		onCore(t, core, func() {
			p = begin(t, nil, "load", "--address", server.Address(), "--duration", "3s", "--users", "4", "--keys", "1000",
				"--min-throughput", strconv.Itoa(max(1, atLeast)), "-o", "json")
		})
		p.code(t)
		return clitest.Result(t, p.out.String())
	}
	alone := run(0, 0).Total.Throughput
	beside := run(3, int(alone/4))
	alone = min(alone, run(0, 0).Total.Throughput) // Redis may have less of a CPU at one time than at another

	s := beside.Total.Stalled
	if s == nil || s.Waited == nil || s.Waited.Length <= 0 {
		t.Fatalf("beside three busy programs the load generator did not wait: %+v", s)
	}
	doubted := slices.ContainsFunc(beside.Doubts, func(d impact.Doubt) bool {
		return d.Reason == impact.GeneratorStarved || d.Reason == impact.GeneratorStalled ||
			d.Reason == "LoadGeneratorSaturated"
	})
	truth.Report(t, "T11", "redquake load of 4 users beside three busy programs on its core",
		fmt.Sprintf("%.0f/s, or in doubt", alone),
		fmt.Sprintf("%.0f/s, at most %.0f/s, in doubt %t, %s", beside.Total.Throughput, s.Throughput, doubted,
			beside.Verdict),
		(doubted || alone <= s.Throughput) && beside.Verdict != "Fail")
}

// ownCore is one that this process may use.
func ownCore(t *testing.T) int {
	t.Helper()
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	for core := range 1024 {
		if allowed.IsSet(core) {
			return core
		}
	}
	t.Fatal("no core is allowed")
	return 0
}

// onCore runs start on a core, so that the processes which it starts stay on it.
func onCore(t *testing.T, core int, start func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	only.Set(core)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			t.Error(err)
		}
	}()
	start()
}
