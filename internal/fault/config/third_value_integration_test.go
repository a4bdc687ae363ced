//go:build integration

package config

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// reverted reverts a fault, each step by another operator, and returns the warnings.
func reverted(t *testing.T, s *faulttest.Stage, spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) []string {
	t.Helper()
	await.Until(t, "the fault is reverted", func() error {
		err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), target))
		var steps *faulttest.Pending
		if err != nil && !errors.As(err, &steps) {
			t.Fatal(err)
		}
		return err
	})
	return s.Reborn(spec).(contract.Warner).Warnings(target)
}

// inFile is the line of a setting in a server's configuration file; "" = it has none.
func inFile(t *testing.T, server *redistest.Server, setting string) string {
	t.Helper()
	for line := range strings.Lines(faulttest.FileOf(t, server)) {
		if strings.HasPrefix(line, setting+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// What somebody else has set during the fault stays, in memory and in the file; the rest is reverted.
func TestConfigLeavesWhatSomebodyElseHasSet(t *testing.T) {
	redistest.Each(t, testConfigLeavesWhatSomebodyElseHasSet)
}

func testConfigLeavesWhatSomebodyElseHasSet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		rewrite bool // as an administrator does who means it to stay
		stored  bool // what CONFIG GET showed after the injection was stored
	}{
		{"in memory", false, true},
		{"in the file as well", true, true},
		{"the operator died after CONFIG SET", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
			spec := configFault(parameters{
				"latency-monitor-threshold": "1",
				"timeout":                   "300",
				"repl-backlog-size":         "2mb",
				"notify-keyspace-events":    "KEA",
			})
			old := redistest.Pairs(server.Do("config", "get", "repl-backlog-size"))["repl-backlog-size"]
			injector, target := s.Aim(spec)
			before := target.DeepCopy()
			faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
			if !tc.stored {
				target = before
			}
			server.Do("config", "set", "latency-monitor-threshold", "4096")
			if tc.rewrite {
				server.Do("config", "rewrite")
			}
			wantWarning(t, reverted(t, s, spec, target), "pod redis-0", "latency-monitor-threshold 4096", "before the fault: 0")
			expectSettings(t, server, map[string]string{
				"latency-monitor-threshold": "4096",
				"timeout":                   "0",
				"repl-backlog-size":         old,
				"notify-keyspace-events":    "",
			})
			if by := injector.ManualRevertCommand(target); strings.Contains(by, "latency-monitor-threshold") ||
				!strings.Contains(by, "timeout 0") {
				t.Errorf("manual command: %s", by)
			}
			if want := map[bool]string{true: "latency-monitor-threshold 4096"}[tc.rewrite]; tc.rewrite &&
				inFile(t, server, "latency-monitor-threshold") != want {
				t.Errorf("the file has %q, want %q", inFile(t, server, "latency-monitor-threshold"), want)
			}
			if line := inFile(t, server, "timeout"); line == "timeout 300" {
				t.Errorf("the file has %q of the fault", line)
			}
		})
	}
}

// The server is restarted during the fault with another value in its file: the running server and its file go on to
// agree.
func TestConfigLeavesWhatAFileWasGiven(t *testing.T) {
	redistest.Each(t, testConfigLeavesWhatAFileWasGiven)
}

func testConfigLeavesWhatAFileWasGiven(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := configFault(parameters{"hz": "100"})
	injector, target := s.Aim(spec)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
	file, err := os.OpenFile(server.Info("config_file"), os.O_APPEND|os.O_WRONLY, 0)
	faulttest.Must(t, err)
	_, err = file.WriteString("\nhz 30\n")
	faulttest.Must(t, errors.Join(err, file.Close()))
	server.Restart()
	expectSettings(t, server, map[string]string{"hz": "30"})
	wantWarning(t, reverted(t, s, spec, target), "pod redis-0", "hz 30", "before the fault: 10")
	expectSettings(t, server, map[string]string{"hz": "30"})
	if n := rewritesOf(t, server); n != 0 {
		t.Errorf("the file was rewritten %d times, want none", n)
	}
}
