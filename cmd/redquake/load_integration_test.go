//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestLoadTable(t *testing.T) { redistest.Each(t, testLoadTable) }

func testLoadTable(t *testing.T) {
	t.Parallel()
	address, release := redistest.Start(t).Address(), redistest.ReleaseOf(t)
	code, out, stderr := runCommand(t, nil, "load", "--address", address, "--users", "3", "--requests", "500", "--command",
		"INCR {key}")
	// on a busy machine
	if disturbed := code == cli.ExitInconclusive && strings.HasPrefix(out, "Inconclusive: "); code != 0 && !disturbed {
		t.Fatalf("exit code %d, stdout\n%sstderr\n%s", code, out, stderr)
	}
	for _, want := range []string{
		": load test from this machine\n", ", standalone at " + address, release.Product + " " + redistest.Version(t),
		"closed loop, 3 users",
		"Latency counts from the send", "\nOperation  Requests  Errors",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`\nErrors +0 %\n(.*\n)*all +500 +0 `).MatchString(out) {
		t.Errorf("there is no row of 500 requests without an error in\n%s", out)
	}
	if strings.Contains(out, "load pod") || strings.Contains(out, "its node") {
		t.Errorf("pods and nodes are in the result of a process:\n%s", out)
	}
	if !strings.Contains(stderr, "connecting to "+address) {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// judged reads the result of a load in JSON, and checks that the exit code is that of its verdict, which on a busy
// machine may be Inconclusive.
func judged(t *testing.T, code int, out, stderr string) *result.Load {
	t.Helper()
	r := clitest.Result(t, out)
	if want, ok := map[string]int{
		"Pass":         cli.ExitOK,
		"Fail":         cli.ExitFailed,
		"Inconclusive": cli.ExitInconclusive,
	}[r.Verdict]; !ok || code != want {
		t.Fatalf("verdict %s, exit code %d, stderr\n%s", r.Verdict, code, stderr)
	}
	if (r.Verdict == "Inconclusive") != (len(r.Doubts) > 0) {
		t.Errorf("verdict %s with the doubts %v", r.Verdict, r.Doubts)
	}
	return r
}

// Objectives that cannot be missed and one that cannot be met: on stdout as text and JSON, and in the exit code.
func TestLoadObjectives(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	args := []string{
		"load", "--address", address, "--requests", "200", "--users", "2", "--timeout", "60s",
		"--min-throughput", "0.001", "--max-latency-p99", "1m",
		"--max-error-rate", "0%", "--verify-writes", "--max-lost-writes", "0",
	}
	code, out, stderr := runCommand(t, nil, append(args, "-o", "json")...)
	r := judged(t, code, out, stderr)
	if r.Verdict != "Pass" || len(r.Objectives) != 4 || r.Verification == nil {
		t.Errorf("%s with the objectives %+v: %s", r.Verdict, r.Objectives, r.Why)
	}
	for _, o := range r.Objectives {
		if o.Met == nil || !*o.Met || o.Actual == nil || *o.Actual < 0 {
			t.Errorf("objective %+v", o)
		}
	}
	code, out, stderr = runCommand(t, nil, append(args, "--max-latency-p50", "1us", "--command", "PING")...)
	missed := code == cli.ExitFailed && strings.HasPrefix(out, "Fail: ") &&
		regexp.MustCompile(`\nmaxLatencyP50 .* ✗ missed\n`).MatchString(out) &&
		regexp.MustCompile(`\nErrors +0 % +0 % ✓ met\n`).MatchString(out)
	disturbed := code == cli.ExitInconclusive && strings.HasPrefix(out, "Inconclusive: ") &&
		strings.Contains(out, "this process did not run for ")
	if !missed && !disturbed {
		t.Errorf("exit code %d, stdout\n%sstderr\n%s", code, out, stderr)
	}
	code, out, _ = runCommand(t, nil, append(args, "--max-latency-p999", "0s")...)
	if code != cli.ExitError || out != "" {
		t.Errorf("an objective that no load can meet: exit code %d, stdout\n%s", code, out)
	}
}

// Stdout contains only JSON. TestOpenLoopInVirtualTime checks the numbers.
func TestLoadJSON(t *testing.T) { redistest.Each(t, testLoadJSON) }

func testLoadJSON(t *testing.T) {
	t.Parallel()
	address, release := redistest.Start(t).Address(), redistest.ReleaseOf(t)
	code, out, stderr := runCommand(t, nil, "load", "--address", address, "--rate", "200", "--warm-up", "1s", "--duration",
		"2s", "-o", "json", "--prefill", "--keys", "10")
	r := judged(t, code, out, stderr)
	if r.Outcome != result.Finished || r.Latency != result.ResponseTime || r.Total.OK == 0 ||
		r.Total.OK > r.Total.Requests || len(r.Operations) != 2 {
		t.Errorf("the run is %+v", r)
	}
	if seconds := time.Duration(r.Elapsed).Seconds(); seconds != 3 || time.Duration(r.Measured).Seconds() != 2 {
		t.Errorf("elapsed %v, measured %v; want 3 s and 2 s", seconds, r.Measured)
	}
	if r.Total.Latency == nil || r.Total.Service == nil || r.Total.Latency.P50 <= 0 ||
		r.Total.Latency.P50 < r.Total.Service.P50 {
		t.Errorf("latency %+v, service %+v", r.Total.Latency, r.Total.Service)
	}
	if r.Redis == nil || r.Redis.MaxMemory == 0 || r.Target.Server != release.Product ||
		r.Target.Version != redistest.Version(t) {
		t.Errorf("redis is %+v, target %+v", r.Redis, r.Target)
	}
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(clitest.LoadTestYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCommand(t, nil, "load", "-f", file, "--address", address, "--duration", "1s", "-o", "json")
	if r := judged(t, code, out, stderr); r.Shape != "closed loop, 10 users" || len(r.Operations) != 1 ||
		r.Operations[0].Name != "get" || r.Total.OK == 0 {
		t.Errorf("the run is %+v", r)
	}
}

// SIGINT ends the load; the measurements are written, also in JSON, and also if the ledger cannot be verified any more.
func TestLoadInterrupted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format   string
		verified bool
	}{{"json", false}, {"text", false}, {"json", true}, {"text", true}} {
		args := []string{"load", "--rate", "1000", "--duration", "1h", "-o", tt.format}
		name := tt.format
		if tt.verified {
			args, name = append(args, "--verify-writes", "--verify-share", "50%"), name+", verified"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, redistest.Options{})
			out := interrupted(t, server, append(args, "--address", server.Address())...)
			if tt.format == "text" {
				wants := []string{
					"Inconclusive: ", "Not conclusive: the load was interrupted", " of 1 h",
					"- Interrupted: the load did not run to its end: the figures are valid until then\n", "\nOperation",
				}
				if tt.verified {
					wants = append(wants, "How many were lost is not known: the load did not finish.\n", "\nledger ")
				}
				for _, want := range wants {
					if !strings.Contains(out, want) {
						t.Errorf("%q is not in\n%s", want, out)
					}
				}
				return
			}
			r := clitest.Result(t, out)
			if r.Outcome != result.Interrupted || r.Planned != result.Seconds(time.Hour) || r.Total.OK == 0 {
				t.Errorf("outcome %s after %v of %v, %d requests", r.Outcome, r.Elapsed, r.Planned, r.Total.OK)
			}
			if v := r.Verification; tt.verified != (v != nil) || v != nil && (v.Unread == "" || v.Lost != nil) {
				t.Errorf("the verification is %+v, want one with the reason why it is missing", v)
			}
		})
	}
}

// interrupted runs the command until its load is running, sends SIGINT and returns its stdout.
func interrupted(t *testing.T, server *redistest.Server, args ...string) string {
	t.Helper()
	p := begin(t, nil, args...)
	awaitServed(t, server)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d; stderr\n%s", code, cli.ExitInterrupted, p.err.String())
	}
	return p.out.String()
}

// awaitServed waits until a server has served more commands than the preparation of a load needs, so that the load is
// running.
func awaitServed(t *testing.T, server *redistest.Server) {
	t.Helper()
	await.Until(t, "the load goes on", func() error {
		// the prefill sends SET, and the preparation each command once
		stats := server.Do("INFO", "commandstats").(string)
		_, calls, _ := strings.Cut(stats, "cmdstat_get:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		if n, _ := strconv.Atoi(calls); n < 100 {
			return fmt.Errorf("%d GETs were served", n)
		}
		return nil
	})
}

// awaitCommands waits until a load without a prefill goes on.
func awaitCommands(t *testing.T, server *redistest.Server) {
	t.Helper()
	await.Until(t, "the load goes on", func() error {
		if n, _ := strconv.Atoi(server.Info("total_commands_processed")); n < 500 {
			return fmt.Errorf("%d commands were served", n)
		}
		return nil
	})
}

// If a number of requests ends the run, its rate counts the time until the last request, not whole intervals.
func TestLoadRateOfRequests(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Address()
	code, out, stderr := runCommand(t, nil, "load", "--address", address, "--users", "1", "--think-time", "50ms",
		"--requests", "22", "--command", "PING", "-o", "json")
	r := judged(t, code, out, stderr)
	if r.Total.OK != 22 || r.Measured != r.Elapsed || r.Elapsed < result.Seconds(1050*time.Millisecond) ||
		time.Duration(r.Elapsed)%(100*time.Millisecond) == 0 {
		t.Errorf("%d requests in %v of %v", r.Total.OK, r.Measured, r.Elapsed)
	}
	if want := 22 / time.Duration(r.Elapsed).Seconds(); r.Total.Throughput < 0.999*want ||
		r.Total.Throughput > 1.001*want {
		t.Errorf("%v/s, want %v", r.Total.Throughput, want)
	}
}

// If Redis crashes during the run, the load continues and counts errors.
func TestLoadOfADyingRedis(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	// long enough to see that it runs
	p := begin(t, nil, "load", "--address", server.Address(), "--rate", "1000", "--duration", "15s", "-o", "json")
	awaitServed(t, server)
	server.Kill()
	code := p.code(t)
	r := judged(t, code, p.out.String(), p.err.String())
	bad := r.Total.Failed + r.Total.Unknown + r.Total.Dropped
	if r.Total.OK == 0 || bad == 0 || r.LongestGap == nil || !r.LongestGap.Open || len(r.Errors) == 0 {
		t.Errorf("total %+v, gap %+v, errors %v; want successes, errors, a gap that did not end", r.Total, r.LongestGap,
			r.Errors)
	}
}

func TestLoadFails(t *testing.T) {
	t.Parallel()
	locked := redistest.NewServer(t, redistest.Options{Password: "right"}).Address()
	tests := []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"no password", nil, []string{"--address", locked}, cli.ExitError, "redquake load: AuthenticationFailed: "},
		{
			"wrong password",
			[]string{loadflags.PasswordVariable + "=wrong"},
			[]string{"--address", locked},
			cli.ExitError,
			"redquake load: AuthenticationFailed: ",
		},
		{
			"unknown command",
			[]string{loadflags.PasswordVariable + "=right"},
			[]string{"--address", locked, "--command", "NOSUCH {key}"},
			cli.ExitError,
			"redquake load: CommandInvalid: ",
		},
		{
			"TLS to a plain server",
			nil,
			[]string{"--address", locked, "--tls", "--insecure"},
			cli.ExitError,
			"redquake load: TLSFailed: ",
		},
		{"unknown flag", nil, []string{"--pasword", "x"}, cli.ExitError, "redquake load: unknown flag: --pasword"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runCommand(t, tt.env, append([]string{"load", "--duration", "1s"}, tt.args...)...)
			if code != tt.code || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant %d and %q", code, out, stderr, tt.code, tt.want)
			}
			if strings.Contains(stderr, "wrong\n") || strings.Contains(stderr, "right") {
				t.Errorf("the password is in stderr:\n%s", stderr)
			}
		})
	}
}

func TestLoadWithPassword(t *testing.T) {
	t.Parallel()
	address := redistest.NewServer(t, redistest.Options{
		Password: "right",
		Users:    []string{"app on >word ~* +@all"},
	}).Address()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"load", "--address", address, "--requests", "50", "--users", "2"}
	for name, run1 := range map[string]func() (int, string, string){
		"environment": func() (int, string, string) {
			return runCommand(t, []string{loadflags.PasswordVariable + "=right"}, args...)
		},
		"file": func() (int, string, string) {
			return runCommand(t, []string{loadflags.PasswordVariable + "=wrong"},
				append(args, "--username", "app", "--password-file", file)...)
		},
	} {
		if code, out, stderr := run1(); code != 0 || !regexp.MustCompile(`\nall +50 +0 `).MatchString(out) {
			t.Errorf("%s: exit code %d, stdout\n%sstderr\n%s", name, code, out, stderr)
		}
	}
}

func TestLoadBadFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(clitest.LoadTestYAML, "users: 10", "userz: 10", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runCommand(t, nil, "load", "-f", file)
	if want := "redquake load: " + file + `: unknown field "spec.load.userz"`; code != cli.ExitError || out != "" ||
		!strings.HasPrefix(stderr, want) {
		t.Errorf("exit code %d, stdout %q, stderr\n%swant %d and %s", code, out, stderr, cli.ExitError, want)
	}
}

// The flags of a search are used, and its result is written. Any machine can serve the rate.
func TestLoadSearch(t *testing.T) {
	t.Parallel()
	code, out, stderr := runCommand(t, nil, "load", "--address", redistest.Start(t).Address(), "--search", "200:200",
		"--max-error-rate", "99%", "--search-trial", "1s", "-o", "json")
	if s := judged(t, code, out, stderr).Search; s == nil || !s.Done || s.Rate != 200 || len(s.Trials) != 2 {
		t.Errorf("the search is %+v, want 200/s", s)
	}
	if !strings.Contains(stderr, "trial 1: 200/s meets the objectives") {
		t.Errorf("stderr has no trial:\n%s", stderr)
	}
}
